//! One document of a file: its text, its tree, and edits of both.

use std::fmt;

use crate::{
    lines,
    node::Node,
    parse::{ParseError, parse_one, sections},
    patch::patch_and_parse,
    resolve,
};

/// A document in three parts, which joined are the file's own bytes.
#[derive(Clone, Debug)]
pub struct Document {
    lead: String,
    text: String,
    tail: String,
    root: Option<Node>,
}

/// The reason why a document cannot be edited; the document is unchanged.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum EditError {
    /// The path leads through a scalar or an alias, or to an item after the end of a sequence.
    #[error("no value can be set at {0:?}")]
    NoSuchPath(String),
    /// The document is empty or its root is not a mapping, or no edit of its text has the wanted
    /// meaning.
    #[error("the document's text cannot be edited to have the new content")]
    NotEditable,
}

// === impl Document ===

impl Document {
    /// Splits a file into its documents.
    ///
    /// # Errors
    /// Returns an error if the file is not YAML.
    pub fn split(file: &str) -> Result<Vec<Self>, ParseError> {
        let mut documents = Vec::new();
        for section in sections(file)? {
            let whole = &file[section.range.clone()];
            let Some(root) = section.root else {
                documents.push(Self::without_content(whole));
                continue;
            };
            let begin = section.range.start;
            let opened = section.opened.map_or(0, |opened| opened - begin);
            let from = text_start(whole, opened, root.start - begin);
            let to = lines::content_end(whole, root.end - begin);
            let text = &whole[from..to];
            // Offsets must be relative to the text, so it is parsed again alone. A text that needs
            // its directives (`%TAG`) does not parse alone and is kept unchanged, as one without
            // content.
            documents.push(match parse_one(text) {
                Ok(root) => Self {
                    lead: whole[..from].to_owned(),
                    text: text.to_owned(),
                    tail: whole[to..].to_owned(),
                    root: Some(root),
                },
                Err(_) => Self::without_content(whole),
            });
        }
        if documents.is_empty() {
            documents.push(Self::without_content(file));
        }
        Ok(documents)
    }

    /// Parses a file with exactly one document that is not empty.
    ///
    /// Documents of comments only belong to the lead or the tail.
    ///
    /// # Errors
    /// Returns an error if the file is not YAML, or holds no document or several.
    pub fn parse(file: &str) -> Result<Self, ParseError> {
        let mut documents = Self::split(file)?;
        let contents = documents.iter().filter(|document| document.root.is_some());
        if contents.count() != 1 {
            // The one document may depend on its directives.
            return parse_one(file).map(|_| Self::without_content(file));
        }
        let position = documents
            .iter()
            .position(|document| document.root.is_some())
            .unwrap_or_default();
        let join = |documents: &[Self]| documents.iter().map(Self::to_string).collect::<String>();
        let (before, after) = (
            join(&documents[..position]),
            join(&documents[position + 1..]),
        );
        let mut document = documents.swap_remove(position);
        document.lead.insert_str(0, &before);
        document.tail.push_str(&after);
        Ok(document)
    }

    /// Returns everything before the content: directives, `---`, blank lines.
    #[must_use]
    pub fn lead(&self) -> &str {
        &self.lead
    }

    /// Returns the content with the comments above it, without a trailing newline.
    ///
    /// The offsets of [`root`](Self::root) refer to this text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns everything after the content: a newline, blank lines, comments.
    #[must_use]
    pub fn tail(&self) -> &str {
        &self.tail
    }

    /// Returns the tree of the content, or `None` for a document without content.
    #[must_use]
    pub fn root(&self) -> Option<&Node> {
        self.root.as_ref()
    }

    /// Returns the value at a path; see [`Node::at`].
    #[must_use]
    pub fn get(&self, path: &[&str]) -> Option<&Node> {
        self.root()?.at(path)
    }

    /// Sets the value at a path; see [`Node::set`]. Every other byte stays as it is.
    ///
    /// # Errors
    /// Returns an error if the path cannot have a value or the text cannot be edited.
    pub fn set(&mut self, path: &[&str], value: impl Into<Node>) -> Result<(), EditError> {
        let value = value.into().detached();
        self.edit(|root| {
            if root.set(path, value.clone()) {
                Ok(())
            } else {
                Err(EditError::NoSuchPath(path.join(".")))
            }
        })
    }

    /// Removes the key or item at a path, with the comments directly above it, and returns whether
    /// it existed.
    ///
    /// # Errors
    /// Returns an error if the text cannot be edited.
    pub fn remove(&mut self, path: &[&str]) -> Result<bool, EditError> {
        if self.get(path).is_none() {
            return Ok(false);
        }
        self.edit(|root| {
            root.remove(path);
            Ok(())
        })?;
        Ok(true)
    }

    /// Changes the tree, and edits the text to have the meaning of the changed tree.
    ///
    /// Use this for several changes at once: the text is edited and parsed once. `change` runs a
    /// second time, on a tree with resolved aliases, if it replaces a value that an alias refers
    /// to. Values from other texts must be [`detached`](Node::detached).
    ///
    /// # Errors
    /// Returns the error of `change`, or an error if the text cannot be edited.
    pub fn edit(
        &mut self,
        change: impl Fn(&mut Node) -> Result<(), EditError>,
    ) -> Result<(), EditError> {
        let root = self.root.as_ref().ok_or(EditError::NotEditable)?;
        let edited = |mut target: Node| {
            change(&mut target)?;
            Ok(patch_and_parse(&self.text, root, &target, &self.text))
        };
        let patched = match edited(root.clone())? {
            Some(patched) => Some(patched),
            None => resolve(root)
                .map(|resolved| edited(resolved.detached()))
                .transpose()?
                .flatten(),
        };
        let (text, root) = patched.ok_or(EditError::NotEditable)?;
        (self.text, self.root) = (text, Some(root));
        Ok(())
    }

    fn without_content(text: &str) -> Self {
        Self {
            lead: text.to_owned(),
            text: String::new(),
            tail: String::new(),
            root: None,
        }
    }
}

/// Writes the bytes of the document.
impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}", self.lead, self.text, self.tail)
    }
}

/// Returns the offset at which the content's text begins.
///
/// The text begins with the first comment after the `---` line, else with the content itself.
/// Content on the same line as `---` begins there.
fn text_start(document: &str, opened: usize, root: usize) -> usize {
    let mark = if document.starts_with('\u{feff}') {
        '\u{feff}'.len_utf8()
    } else {
        0
    };
    let first_line = if opened == 0 {
        mark
    } else {
        lines::end(document, opened)
    };
    if root < first_line {
        return root;
    }
    let mut at = first_line;
    while at < root {
        let end = lines::end(document, at);
        if document[at..end].starts_with('#') {
            return at;
        }
        if end > root {
            break;
        }
        at = end;
    }
    lines::start(document, root).max(mark)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn splits_off_the_content_with_its_comments() {
        let file =
            "# licence\n---\n\n# about\na: 1 # line\n\n# foot\n---\nb: |\n  x\n\n--- # c\n{c: 1}\n";
        let documents = Document::split(file).unwrap();
        let texts: Vec<_> = documents
            .iter()
            .map(|document| document.text.as_str())
            .collect();
        assert_eq!(texts, ["# about\na: 1 # line", "b: |\n  x", "{c: 1}"]);
        assert_eq!(documents[0].lead, "# licence\n---\n\n");
        assert_eq!(documents[0].tail, "\n\n# foot\n");
    }

    #[test]
    fn excludes_the_byte_order_mark_from_the_content() {
        let documents = Document::split("\u{feff}apiVersion: v1\nkind: é\n").unwrap();
        assert!(documents[0].get(&["apiVersion"]).is_some());
        assert_eq!(documents[0].text, "apiVersion: v1\nkind: é");
        assert_eq!(
            documents[0].to_string(),
            "\u{feff}apiVersion: v1\nkind: é\n"
        );
    }

    #[test]
    fn joins_documents_without_content_to_the_one_with_content() {
        let file = "# licence\n---\n---\na: 1\n---\n# foot\n";
        let document = Document::parse(file).unwrap();
        assert_eq!(document.text(), "a: 1");
        assert_eq!(document.to_string(), file);
        assert!(matches!(
            Document::parse("a: 1\n---\nb: 1\n"),
            Err(ParseError::NotSingle(2))
        ));
    }

    #[test]
    fn edits_values_and_keeps_every_other_byte() {
        let file =
            "# top\n---\n# about\nkind:   'X'   # kind\r\nlist:\r\n  - a # one\r\n\r\n# foot\n";
        let mut document = Document::parse(file).unwrap();
        document.set(&["kind"], "Y Z").unwrap();
        document.set(&["list", "1"], 2).unwrap();
        assert!(document.remove(&["list", "0"]).unwrap());
        assert!(!document.remove(&["list", "7"]).unwrap());
        assert_eq!(
            document.to_string(),
            "# top\n---\n# about\nkind:   \"Y Z\"   # kind\r\nlist:\r\n  - 2\r\n\r\n# foot\n"
        );
        assert_eq!(document.get(&["list", "0"]).unwrap().as_str(), Some("2"));
    }

    #[test]
    fn keeps_the_value_of_an_alias_whose_anchor_is_replaced() {
        let mut document = Document::parse("a: &x 1\nb: *x # why\n").unwrap();
        document.set(&["a"], 2).unwrap();
        assert_eq!(document.to_string(), "a: 2\nb: 1 # why\n");
    }

    #[test]
    fn leaves_the_document_unchanged_if_an_edit_is_impossible() {
        let file = "a: 1\n";
        let mut document = Document::parse(file).unwrap();
        assert_eq!(
            document.set(&["a", "b"], 2),
            Err(EditError::NoSuchPath("a.b".to_owned()))
        );
        assert_eq!(document.remove(&["a"]), Err(EditError::NotEditable));
        assert_eq!(document.to_string(), file);
        let mut empty = Document::split("# nothing\n").unwrap().remove(0);
        assert_eq!(empty.set(&["a"], 1), Err(EditError::NotEditable));
    }

    proptest! {
        #[test]
        fn restores_the_text_when_split_documents_are_joined(lines in prop::collection::vec(prop_oneof![
            Just("---"), Just("--- # x"), Just("# comment"), Just(""), Just("a: 1"), Just("b: é # x"),
            Just("c: |"), Just("  text"), Just("  # not a comment"), Just("..."), Just("d: {x: [1]}"),
            Just("  "), Just("- item"),
        ], 0..14), crlf: bool, ends: bool) {
            let newline = if crlf { "\r\n" } else { "\n" };
            let file = lines.join(newline) + if ends { newline } else { "" };
            if let Ok(documents) = Document::split(&file) {
                let joined: String = documents.iter().map(Document::to_string).collect();
                prop_assert_eq!(joined, file);
            }
        }

        /// Setting any scalar changes the bytes of that scalar and no others.
        #[test]
        fn keeps_all_other_bytes_when_a_scalar_is_set(
            lines in prop::collection::vec(prop_oneof![
                Just("# comment"), Just(""), Just("a: 1 # x"), Just("b:   'é'"), Just("c: {x: [1, y]} # z"),
                Just("d:\n  e: 0644\n  # in d\n  f:\n    - g\n    -   h: \"i\"  # j"), Just("k: >-\n  folded\n  text"),
                Just("l: |\n  text\n\n  # text"),
            ], 1..8),
            which: prop::sample::Index, value in prop_oneof![Just("word"), Just("two words"), Just("7")], crlf: bool,
        ) {
            let mut seen = std::collections::HashSet::new();
            let lines: Vec<_> = lines.into_iter().filter(|line| seen.insert(*line)).collect();
            let mut file = lines.join("\n") + "\n";
            if crlf {
                file = file.replace('\n', "\r\n");
            }
            let Ok(mut document) = Document::parse(&file) else { return Ok(()) };
            let mut paths = Vec::new();
            scalars(document.root().unwrap(), &mut Vec::new(), &mut paths);
            let (path, range) = &paths[which.index(paths.len())];
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            let mut before = document.lead().to_owned() + &document.text()[..range.start];
            // The range of a block scalar begins after its header.
            if before.trim_end().ends_with(['|', '>']) || before.trim_end().ends_with(">-") {
                before.truncate(before.trim_end().rfind(' ').unwrap() + 1);
            }
            let after = document.text()[range.end..].to_owned() + document.tail();
            document.set(&path, value).unwrap();
            let edited = document.to_string();
            prop_assert!(edited.starts_with(&before), "{path:?} in {file:?} became {edited:?}");
            prop_assert!(edited.ends_with(&after), "{path:?} in {file:?} became {edited:?}");
            prop_assert!(edited.len() <= before.len() + value.len() + 2 + after.len());
            prop_assert_eq!(document.get(&path).unwrap().as_str(), Some(value));
        }
    }

    /// Collects the path and the byte range of every scalar.
    fn scalars(
        node: &Node,
        path: &mut Vec<String>,
        paths: &mut Vec<(Vec<String>, std::ops::Range<usize>)>,
    ) {
        let children = node
            .entries()
            .iter()
            .map(|(key, value)| (key.as_str().unwrap().to_owned(), value));
        let items = node.items().iter().enumerate();
        for (part, child) in children.chain(items.map(|(index, item)| (index.to_string(), item))) {
            path.push(part);
            scalars(child, path, paths);
            path.pop();
        }
        if node.as_str().is_some() {
            paths.push((path.clone(), node.start..node.end));
        }
    }
}
