//! Finds the string literals in the programs' sources.

use std::{fs, path::Path};

/// Returns every string literal of the crates and programs, without their tests.
pub fn literals(repository: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for group in ["crates", "bins"] {
        for package in fs::read_dir(repository.join(group)).unwrap() {
            collect(&package.unwrap().path().join("src"), &mut found);
        }
    }
    found
}

fn collect(directory: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let is_test = path.file_stem().is_some_and(|name| name == "tests");
        if path.is_dir() && !is_test {
            collect(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "rs") && !is_test {
            let source = fs::read_to_string(&path).unwrap();
            let program = source.split("#[cfg(test)]\nmod tests {").next().unwrap();
            found.extend(strings(program));
        }
    }
}

/// Returns the string literals of a source file.
///
/// Implements just enough of Rust's grammar to skip comments and character literals.
fn strings(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = source;
    while let Some(at) = rest.find(['"', '/', '\'']) {
        let before = &rest[..at];
        rest = &rest[at..];
        if rest.starts_with("//") {
            rest = rest.split_once('\n').map_or("", |(_, rest)| rest);
        } else if let Some(quote) = ["'\"'", "'\\\"'", "'\\''"]
            .iter()
            .find(|it| rest.starts_with(**it))
        {
            rest = &rest[quote.len()..];
        } else if rest.starts_with('"') {
            let hashes = before.len() - before.trim_end_matches('#').len();
            let is_raw = before.trim_end_matches('#').ends_with('r');
            let (text, behind) = if is_raw {
                raw(&rest[1..], hashes)
            } else {
                escaped(&rest[1..])
            };
            found.push(text);
            rest = behind;
        } else {
            rest = &rest[1..];
        }
    }
    found
}

fn raw(source: &str, hashes: usize) -> (String, &str) {
    let end = format!("\"{}", "#".repeat(hashes));
    let (text, rest) = source.split_once(&end).unwrap_or((source, ""));
    (text.to_owned(), rest)
}

/// Reads a string up to its closing quote; a backslash at the end of a line continues the string.
fn escaped(source: &str) -> (String, &str) {
    let mut text = String::new();
    let mut chars = source.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (text, &source[at + 1..]),
            '\\' => match chars.next() {
                Some((_, '\n')) => {
                    let rest = chars.as_str();
                    let skipped = rest.len() - rest.trim_start().len();
                    chars
                        .by_ref()
                        .take(rest[..skipped].chars().count())
                        .for_each(drop);
                }
                Some((_, 'n')) => text.push('\n'),
                Some((_, c)) => text.push(c),
                None => {}
            },
            c => text.push(c),
        }
    }
    (text, "")
}

#[test]
fn distinguishes_strings_from_comments_and_characters() {
    let source = "let a = \"one \\\n   line\"; // \"no\"\nlet c = '\"'; r#\"raw \"x\"\"#; f(\"say \\\"it\\\"\")";
    assert_eq!(strings(source), ["one line", "raw \"x\"", "say \"it\""]);
}
