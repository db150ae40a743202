//! Formats the changes of a package as a unified diff.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use runner_package::Edit;
use similar::{ChangeTag, TextDiff};

use super::printable;

/// Writes the diff of every file that changes.
///
/// The writer decides whether colours are kept or dropped.
///
/// # Errors
/// Returns an error if the writer fails.
pub fn write(to: &mut impl Write, edits: &[Edit]) -> io::Result<()> {
    edits.iter().try_for_each(|edit| write_file(to, edit))
}

fn write_file(to: &mut impl Write, edit: &Edit) -> io::Result<()> {
    let (bold, cyan) = (Style::new().bold(), colour(AnsiColor::Cyan));
    let side = |prefix, text: Option<&str>| match text {
        Some(_) => format!("{prefix}/{}", edit.path),
        None => "/dev/null".to_owned(),
    };
    writeln!(to, "{bold}--- {}{bold:#}", side("a", edit.old()))?;
    writeln!(to, "{bold}+++ {}{bold:#}", side("b", edit.new_content()))?;
    let (old, new) = (
        edit.old().unwrap_or_default(),
        edit.new_content().unwrap_or_default(),
    );
    let diff = TextDiff::from_lines(old, new);
    for hunk in diff.unified_diff().context_radius(3).iter_hunks() {
        writeln!(to, "{cyan}{}{cyan:#}", hunk.header())?;
        for change in hunk.iter_changes() {
            let (sign, style) = match change.tag() {
                ChangeTag::Delete => ('-', colour(AnsiColor::Red)),
                ChangeTag::Insert => ('+', colour(AnsiColor::Green)),
                ChangeTag::Equal => (' ', Style::new()),
            };
            let line = change.value().trim_end_matches(['\n', '\r']);
            writeln!(to, "{style}{sign}{}{style:#}", printable(line))?;
            if change.missing_newline() {
                writeln!(to, "\\ No newline at end of file")?;
            }
        }
    }
    Ok(())
}

fn colour(colour: AnsiColor) -> Style {
    Style::new().fg_color(Some(colour.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use runner_package::{Change, PackagePath};

    #[test]
    fn shows_changed_new_and_removed_files() {
        let edit = |path: &str, change| Edit {
            path: PackagePath::parse(path).unwrap(),
            change,
        };
        let edits = [
            edit(
                "a.yaml",
                Change::Replace {
                    old: "a: 1\nb: 2\nc: 3\n".to_owned(),
                    new: "a: 1\nb: 4\nc: 3\n".to_owned(),
                },
            ),
            edit(
                "b/new.yaml",
                Change::Create {
                    new: "x: 1".to_owned(),
                    resource: "X/x".to_owned(),
                },
            ),
            edit(
                "gone.yaml",
                Change::Remove {
                    old: "y: 1\n".to_owned(),
                },
            ),
        ];
        let mut text = anstream::StripStream::new(Vec::new());
        write(&mut text, &edits).unwrap();
        insta::assert_snapshot!(String::from_utf8(text.into_inner()).unwrap(), @r"
        --- a/a.yaml
        +++ b/a.yaml
        @@ -1,3 +1,3 @@
         a: 1
        -b: 2
        +b: 4
         c: 3
        --- /dev/null
        +++ b/b/new.yaml
        @@ -0,0 +1 @@
        +x: 1
        \ No newline at end of file
        --- a/gone.yaml
        +++ /dev/null
        @@ -1 +0,0 @@
        -y: 1
        ");
    }
}
