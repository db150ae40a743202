//! One document of a file, split so that its resource can be replaced.

use crate::yaml::{self, Node, ParseError, lines};

/// A document in three parts, which joined are the file's own bytes.
#[derive(Clone, Debug)]
pub struct Document {
    /// Everything before the resource: directives, `---`, blank lines.
    pub lead: String,
    /// The resource with the comments above it, without a trailing newline.
    pub text: String,
    /// Everything after the resource: a newline, blank lines, comments.
    pub tail: String,
    /// Parsed `text`, with offsets into it; `None` for documents without content.
    pub root: Option<Node>,
}

// === impl Document ===

impl Document {
    /// Splits a file into its documents.
    ///
    /// # Errors
    /// Returns an error if the file is not YAML.
    pub fn split(file: &str) -> Result<Vec<Self>, ParseError> {
        let mut documents = Vec::new();
        for document in yaml::documents(file)? {
            let whole = &file[document.range.clone()];
            let Some(root) = document.root else {
                documents.push(Self::without_content(whole));
                continue;
            };
            let begin = document.range.start;
            let opened = document.opened.map_or(0, |opened| opened - begin);
            let from = text_start(whole, opened, root.start - begin);
            let to = lines::content_end(whole, root.end - begin);
            let text = &whole[from..to];
            // Offsets must be relative to the text, so it is parsed again alone. A text that needs
            // its directives (`%TAG`) does not parse alone and is kept unchanged, as one without
            // content.
            documents.push(match yaml::single(text) {
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

    /// Returns whether this is a Kubernetes-style resource, with `apiVersion` and `kind`.
    #[must_use]
    pub fn is_resource(&self) -> bool {
        let is_named = |key| {
            self.root
                .as_ref()
                .and_then(|root| root.get(key))
                .and_then(Node::as_str)
                .is_some_and(|text| !text.is_empty())
        };
        is_named("apiVersion") && is_named("kind")
    }

    /// Returns the bytes of the document.
    #[must_use]
    pub fn join(&self) -> String {
        [self.lead.as_str(), &self.text, &self.tail].concat()
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

/// Returns the offset at which the resource's text begins.
///
/// The text begins with the first comment after the `---` line, else with the resource itself. A
/// resource on the same line as `---` begins there.
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
    fn splits_off_the_resource_with_its_comments() {
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
    fn excludes_the_byte_order_mark_from_the_resource() {
        let documents = Document::split("\u{feff}apiVersion: v1\nkind: é\n").unwrap();
        assert!(documents[0].is_resource());
        assert_eq!(documents[0].text, "apiVersion: v1\nkind: é");
        assert_eq!(documents[0].join(), "\u{feff}apiVersion: v1\nkind: é\n");
    }

    #[test]
    fn distinguishes_resources_from_other_documents() {
        let file = "apiVersion: v1\nkind: ConfigMap\n---\nname: values\n---\n";
        let documents = Document::split(file).unwrap();
        let verdicts: Vec<_> = documents.iter().map(Document::is_resource).collect();
        assert_eq!(verdicts, [true, false, false]);
    }

    proptest! {
        #[test]
        fn joining_undoes_splitting(lines in prop::collection::vec(prop_oneof![
            Just("---"), Just("--- # x"), Just("# comment"), Just(""), Just("a: 1"), Just("b: é # x"),
            Just("c: |"), Just("  text"), Just("  # not a comment"), Just("..."), Just("d: {x: [1]}"),
            Just("  "), Just("- item"),
        ], 0..14), crlf: bool, ends: bool) {
            let newline = if crlf { "\r\n" } else { "\n" };
            let file = lines.join(newline) + if ends { newline } else { "" };
            if let Ok(documents) = Document::split(&file) {
                let joined: String = documents.iter().map(Document::join).collect();
                prop_assert_eq!(joined, file);
            }
        }
    }
}
