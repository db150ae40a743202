//! A configured list of tags: the versions of a function to which a configuration entry applies.

use super::{TagConstraint, version};
use crate::Digest;

/// The implied tag of an image without a tag.
const LATEST: &str = "latest";

/// A list of tag constraints, tag names and digests. An empty list admits nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TagList {
    entries: Vec<Entry>,
}

/// The tag that a constraint selects from a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection<'a> {
    /// The constraint selects this tag.
    Tag(&'a str),
    /// The list admits the constraint as a whole, which selects no single tag.
    Whole,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    /// `*`: every version, and every other tag.
    Any,
    /// A semver constraint, which may be a single version.
    Constraint(TagConstraint),
    /// A tag name or a digest, which admits only itself.
    Name(String),
}

// === impl TagList ===

impl TagList {
    /// Parses a list. An empty entry means `latest`, as an image without a tag does.
    ///
    /// An entry that is not a semver constraint is passed to `complain` with the reason. If it is a
    /// valid tag name, it still admits the tag of that name.
    pub fn parse(tags: &[String], mut complain: impl FnMut(&str, String)) -> Self {
        let mut entries: Vec<Entry> = Vec::with_capacity(tags.len());
        for tag in tags {
            let entry = match tag.trim() {
                "*" => Entry::Any,
                "" | LATEST => Entry::Name(LATEST.to_owned()),
                digest if Digest::parse(digest).is_ok() => Entry::Name(digest.to_owned()),
                text => match TagConstraint::parse(text) {
                    Ok(constraint) if constraint.is_semver() => Entry::Constraint(constraint),
                    Ok(constraint) => {
                        complain(tag, format!("improper constraint: {tag}"));
                        match constraint.exact() {
                            Some(name) => Entry::Name(name.to_owned()),
                            None => continue,
                        }
                    }
                    Err(error) => {
                        complain(tag, error.why);
                        continue;
                    }
                },
            };
            if !entries.contains(&entry) {
                entries.push(entry);
            }
        }
        Self { entries }
    }

    /// Returns whether the list admits a tag or a digest.
    ///
    /// A version is admitted by any constraint that it satisfies; every other tag only by its own
    /// name or by `*`.
    #[must_use]
    pub fn admits(&self, tag: &str) -> bool {
        // Parsed only when an entry needs it: most lists have one constraint.
        let mut parsed = None;
        self.entries.iter().any(|entry| match entry {
            Entry::Any => true,
            Entry::Name(name) => name == tag,
            Entry::Constraint(constraint) => {
                let version = parsed.get_or_insert_with(|| version(tag)).as_ref();
                constraint.as_str() == tag || version.is_some_and(|it| constraint.admits(it))
            }
        })
    }

    /// Returns what a caller's constraint selects from the list.
    ///
    /// A constraint that is a tag selects that tag if the list admits it. Otherwise the highest
    /// version of the list that satisfies the constraint is selected. Two ranges are never
    /// intersected: a range of the list admits only a constraint of the same text.
    #[must_use]
    pub fn select<'a>(&'a self, constraint: &'a TagConstraint) -> Option<Selection<'a>> {
        if let Some(tag) = constraint.exact().filter(|tag| self.admits(tag)) {
            return Some(Selection::Tag(tag));
        }
        if let Some(tag) = constraint.highest(self.fixed()) {
            return Some(Selection::Tag(tag));
        }
        let whole = self.entries.iter().any(|entry| match entry {
            Entry::Any => true,
            Entry::Constraint(listed) => listed.as_str() == constraint.as_str(),
            Entry::Name(_) => false,
        });
        whole.then_some(Selection::Whole)
    }

    /// Returns the entries that each name one tag or digest: versions and all names except
    /// `latest`.
    pub fn fixed(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().filter_map(|entry| match entry {
            Entry::Constraint(constraint) => constraint.exact(),
            Entry::Name(name) => Some(name.as_str()).filter(|name| *name != LATEST),
            Entry::Any => None,
        })
    }

    /// Returns the entries that select among a registry's tags: ranges, `*` and `latest`.
    ///
    /// `*` and `latest` select the highest version in the registry; if the registry has no
    /// versions, `latest` selects the tag of that name.
    pub fn moving(&self) -> impl Iterator<Item = TagConstraint> {
        self.entries.iter().filter_map(|entry| match entry {
            Entry::Constraint(constraint) => {
                constraint.exact().is_none().then(|| constraint.clone())
            }
            Entry::Any => TagConstraint::parse("*").ok(),
            Entry::Name(name) if name == LATEST => TagConstraint::parse("* || latest").ok(),
            Entry::Name(_) => None,
        })
    }

    /// Returns the entries as they were written, without duplicates and rejected entries.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| match entry {
            Entry::Any => "*",
            Entry::Constraint(constraint) => constraint.as_str(),
            Entry::Name(name) => name,
        })
    }

    /// Returns whether the list admits nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    const SHA: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn list(tags: &[&str]) -> (TagList, Vec<String>) {
        let tags: Vec<String> = tags.iter().map(|&tag| tag.to_owned()).collect();
        let mut complaints = Vec::new();
        let list = TagList::parse(&tags, |tag, why| complaints.push(format!("{tag}: {why}")));
        (list, complaints)
    }

    #[rstest]
    #[case::empty(&[], &[], &["v1.0.0", "latest", SHA])]
    #[case::any(&["*"], &["v1.0.0", "v1.0.0-rc.1", "latest", "main", SHA], &[])]
    #[case::tilde(&["~0.4"], &["v0.4", "v0.4.0", "0.4.9"], &["v0.5.0", "v0.4.1-rc.1", "latest", SHA])]
    #[case::exception(&["~0.1 != v0.1.4"], &["v0.1.3", "v0.1.5"], &["v0.1.4", "0.1.4"])]
    #[case::one_of_several(&["~0.2", "~0.3"], &["v0.2.1", "v0.3.0"], &["v0.4.0"])]
    #[case::version(&["v0.4.1"], &["v0.4.1", "0.4.1"], &["v0.4", "v0.4.2"])]
    #[case::short_version(&["v0.4"], &["v0.4", "v0.4.7"], &["v0.5"])]
    #[case::latest(&["latest"], &["latest"], &["v1.0.0"])]
    #[case::no_tag_is_latest(&[""], &["latest"], &["v1.0.0"])]
    #[case::digest(&[SHA], &[SHA], &["latest", "v1.0.0"])]
    fn admits_versions_by_constraint_and_the_rest_by_name(
        #[case] tags: &[&str],
        #[case] admitted: &[&str],
        #[case] refused: &[&str],
    ) {
        let (list, complaints) = list(tags);
        assert_eq!(complaints, [""; 0]);
        for tag in admitted {
            assert!(list.admits(tag), "{tag}");
        }
        for tag in refused {
            assert!(!list.admits(tag), "{tag}");
        }
    }

    #[rstest]
    #[case("main", "main: improper constraint: main", true)]
    #[case(">> 0.4.0", ">> 0.4.0: \">>\" is not an operator", false)]
    #[case("main || ^1", "main || ^1: improper constraint: main || ^1", false)]
    #[case("sha256:12", "sha256:12: tag \"sha256:12\" may hold", false)]
    fn reports_an_entry_that_is_no_constraint(
        #[case] tag: &str,
        #[case] complaint: &str,
        #[case] admits_itself: bool,
    ) {
        let (list, complaints) = list(&["v1.0.0", tag]);
        assert_eq!(complaints.len(), 1);
        assert!(complaints[0].starts_with(complaint), "{complaints:?}");
        assert_eq!(list.admits(tag), admits_itself);
        assert!(list.admits("v1.0.0"));
    }

    #[rstest]
    #[case::version_in_a_range(&["~0.4"], "v0.4.1", Some(Selection::Tag("v0.4.1")))]
    #[case::short_version_in_a_range(&["~0.4"], "v0.4", Some(Selection::Tag("v0.4")))]
    #[case::version_outside(&["~0.4"], "v0.5.0", None)]
    #[case::highest_listed(&["v0.4.1", "v0.4.2", "v0.5.0"], "~0.4", Some(Selection::Tag("v0.4.2")))]
    #[case::equal_ranges(&["~0.4"], "~0.4", Some(Selection::Whole))]
    #[case::ranges_do_not_intersect(&["~0.4"], ">= 0.4.0 < 0.5.0", None)]
    #[case::any(&["*"], ">= 0.4.0", Some(Selection::Whole))]
    #[case::latest(&["latest"], "latest", Some(Selection::Tag("latest")))]
    #[case::range_without_a_version(&["latest", SHA], ">= 0", None)]
    fn selects_by_a_callers_constraint(
        #[case] tags: &[&str],
        #[case] constraint: &str,
        #[case] selection: Option<Selection<'_>>,
    ) {
        let constraint = TagConstraint::parse(constraint).unwrap();
        assert_eq!(list(tags).0.select(&constraint), selection);
    }

    #[test]
    fn separates_fixed_tags_from_those_selected_by_a_registry() {
        let (list, _) = list(&[
            "v0.4.1", "v0.4", "~0.3", "*", "", "latest", SHA, "v0.4.1", "main",
        ]);
        assert_eq!(
            list.fixed().collect::<Vec<_>>(),
            ["v0.4.1", "v0.4", SHA, "main"]
        );
        let moving: Vec<String> = list.moving().map(|it| it.to_string()).collect();
        assert_eq!(moving, ["~0.3", "*", "* || latest"]);
        let texts: Vec<&str> = list.texts().collect();
        assert_eq!(
            texts,
            ["v0.4.1", "v0.4", "~0.3", "*", "latest", SHA, "main"]
        );
    }

    proptest! {
        /// A list admits a version if and only if one of its constraints does.
        #[test]
        fn admits_what_any_entry_admits(
            tags in prop::collection::vec("[~^]?v?[0-2](\\.[0-2]){0,2}", 0..4),
            version in "v?[0-2](\\.[0-2]){0,2}",
        ) {
            let each = tags.iter().map(|tag| TagConstraint::parse(tag).unwrap());
            let expected = each.into_iter().any(|constraint| constraint.matches(&version));
            let list = TagList::parse(&tags, |tag, why| panic!("{tag}: {why}"));
            prop_assert_eq!(list.admits(&version), expected);
        }
    }
}
