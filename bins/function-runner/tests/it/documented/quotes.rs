//! Finds the texts that the documentation quotes.

use std::{fs, path::Path};

/// First words of code spans that are commands, not messages.
const COMMANDS: [&str; 9] = [
    "cargo",
    "cp",
    "grpc-health-probe",
    "helm",
    "kubectl",
    "krm",
    "make",
    "set",
    "wrapper-server",
];

/// First header cells of tables whose first column quotes texts.
const COLUMNS: [&str; 3] = ["message", "seen", "what a client sees"];

/// A code span that quotes a program.
#[derive(Debug)]
pub struct Quote {
    #[expect(dead_code, reason = "for the report of a failed test")]
    pub file: String,
    pub section: String,
    pub text: String,
}

/// Returns the texts quoted in docs/*.md and README.md.
///
/// In the first column of tables about messages and at the start of list items, every code span
/// with a space is a quoted text. Elsewhere, it needs at least four words and must start with a
/// letter, but not with a command.
pub fn quotes(repository: &Path) -> Vec<Quote> {
    let mut files = vec![repository.join("README.md")];
    let docs = fs::read_dir(repository.join("docs")).unwrap();
    files.extend(docs.map(|entry| entry.unwrap().path()));
    files.retain(|file| file.extension().is_some_and(|kind| kind == "md"));
    let mut found = Vec::new();
    for file in files {
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        of_file(&name, &fs::read_to_string(&file).unwrap(), &mut found);
    }
    found
}

fn of_file(file: &str, text: &str, found: &mut Vec<Quote>) {
    let (mut section, mut is_listing, mut is_about_texts) = (String::new(), false, false);
    let mut last = "";
    for line in text.lines() {
        if line.starts_with("```") {
            is_listing = !is_listing;
        }
        if line.starts_with("|---") {
            let first = last.split('|').nth(1).unwrap_or_default().trim();
            is_about_texts = COLUMNS.contains(&first);
        } else if !line.starts_with('|') {
            is_about_texts = false;
        }
        last = line;
        if is_listing {
            continue;
        }
        if let Some(title) = line.strip_prefix("## ") {
            title.clone_into(&mut section);
        }
        let first_cell = line.split(" | ").next().unwrap_or_default().len();
        for (at, span) in spans(line) {
            let is_first =
                (is_about_texts && at < first_cell) || (at == 3 && line.starts_with("- `"));
            let words = span.split(' ').count();
            if (is_first && words > 1) || (words > 3 && reads_like_a_text(span)) {
                found.push(Quote {
                    file: file.to_owned(),
                    section: section.clone(),
                    text: span.to_owned(),
                });
            }
        }
    }
}

/// Returns the code spans of a line with their offsets.
fn spans(line: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    line.split('`')
        .enumerate()
        .filter_map(move |(index, part)| {
            let start = at;
            at += part.len() + 1;
            (index % 2 == 1).then_some((start, part))
        })
}

fn reads_like_a_text(span: &str) -> bool {
    let first = span.split(' ').next().unwrap_or_default();
    let is_command = COMMANDS.contains(&first) || first.starts_with('/');
    !is_command && span.starts_with(|c: char| c.is_alphabetic() || c == '…')
}
