//! A single comparison of a tag constraint, as the interval of versions it admits.

use std::ops::{Bound, RangeBounds};

use semver::{BuildMetadata, Prerelease, Version};

/// A comparison operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    /// Matches up to the next minor version.
    Tilde,
    /// Matches up to the next breaking version, which raises the left-most part that is not zero.
    Caret,
}

/// A version whose last parts may be missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Partial {
    numbers: Vec<u64>,
    pre: Prerelease,
    wildcard: bool,
}

/// An interval of versions, or its complement.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Range {
    from: Bound<Version>,
    to: Bound<Version>,
    inside: bool,
    names_pre_release: bool,
}

// === impl Operator ===

impl Operator {
    pub(super) fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "=" | "==" => Self::Equal,
            "!=" => Self::NotEqual,
            ">" => Self::Greater,
            ">=" | "=>" => Self::GreaterOrEqual,
            "<" => Self::Less,
            "<=" | "=<" => Self::LessOrEqual,
            "~" | "~>" => Self::Tilde,
            "^" => Self::Caret,
            _ => return None,
        })
    }
}

// === impl Partial ===

impl Partial {
    /// Parses `1`, `v0.4`, `0.4.x`, `0.4-rc.1` or `0.4.1-rc.1+build`; build metadata is dropped.
    ///
    /// As in Masterminds/semver v3, a number may have leading zeros (`2024.01.15`), and numbers
    /// after a wildcard do not count: `1.x.3` is `1.x`.
    ///
    /// # Errors
    /// If the word is not such a version: the reason, to be read after the quoted word.
    pub(super) fn parse(word: &str) -> Result<Self, String> {
        let not_a_version = || "is not a version such as 1, 0.4, v0.4.x or 0.4.1-rc.1".to_owned();
        let text = word.strip_prefix('v').unwrap_or(word);
        let (text, build) = cut_suffix(text, '+').ok_or_else(not_a_version)?;
        let (text, pre) = cut_suffix(text, '-').ok_or_else(not_a_version)?;
        BuildMetadata::new(build).map_err(|_| not_a_version())?;
        let pre = Prerelease::new(pre).map_err(|_| not_a_version())?;
        let mut numbers = Vec::new();
        let mut wildcard = false;
        for (place, part) in text.split('.').enumerate() {
            match part {
                _ if place == 3 => return Err(not_a_version()),
                "x" | "X" | "*" => wildcard = true,
                _ if part.is_empty() || !part.bytes().all(|b| b.is_ascii_digit()) => {
                    return Err(not_a_version());
                }
                _ if wildcard => {}
                _ => numbers.push(part.parse().map_err(|_| too_large())?),
            }
        }
        Ok(Self {
            numbers,
            pre,
            wildcard,
        })
    }

    /// Returns whether a part is written as `x` or `*`.
    pub(super) fn has_wildcard(&self) -> bool {
        self.wildcard
    }

    /// Returns whether major, minor and patch are all given.
    pub(super) fn is_full(&self) -> bool {
        self.numbers.len() == 3
    }

    fn number(&self, place: usize) -> u64 {
        self.numbers.get(place).copied().unwrap_or(0)
    }

    /// Returns the version with 0 for the parts that are missing.
    pub(super) fn lowest(&self) -> Version {
        Version {
            major: self.number(0),
            minor: self.number(1),
            patch: self.number(2),
            pre: self.pre.clone(),
            build: BuildMetadata::EMPTY,
        }
    }

    /// Returns the lowest version, a pre-release, above all versions that share the parts up to
    /// `place`.
    fn after(&self, place: usize) -> Result<Version, String> {
        let next = self.number(place).checked_add(1).ok_or_else(too_large)?;
        let mut numbers = [0; 3];
        for (before, number) in numbers.iter_mut().enumerate().take(place) {
            *number = self.number(before);
        }
        numbers[place] = next;
        let [major, minor, patch] = numbers;
        Ok(Version {
            pre: Prerelease::new("0").unwrap_or(Prerelease::EMPTY),
            ..Version::new(major, minor, patch)
        })
    }
}

// === impl Range ===

impl Range {
    pub(super) fn new(operator: Operator, version: Partial) -> Result<Self, String> {
        use Bound::{Excluded, Included, Unbounded};

        let names_pre_release = !version.pre.is_empty();
        let range = |from, to| Self {
            from,
            to,
            inside: true,
            names_pre_release,
        };
        let lowest = version.lowest();
        let from = Included(lowest.clone());
        let Some(last) = version.numbers.len().checked_sub(1) else {
            return Ok(match operator {
                Operator::NotEqual => Self {
                    inside: false,
                    ..range(from.clone(), from)
                },
                Operator::Greater => range(Excluded(lowest), Unbounded),
                Operator::Less => range(Unbounded, Excluded(lowest)),
                _ => range(Unbounded, Unbounded),
            });
        };
        Ok(match operator {
            Operator::Equal if version.is_full() => range(from.clone(), from),
            Operator::Equal => range(from, Excluded(version.after(last)?)),
            Operator::NotEqual => Self {
                inside: false,
                ..Self::new(Operator::Equal, version)?
            },
            Operator::Greater if version.is_full() => range(Excluded(lowest), Unbounded),
            Operator::Greater => range(Included(version.after(last)?), Unbounded),
            Operator::GreaterOrEqual => range(from, Unbounded),
            Operator::Less => range(Unbounded, Excluded(lowest)),
            Operator::LessOrEqual if version.is_full() => range(Unbounded, from),
            Operator::LessOrEqual => range(Unbounded, Excluded(version.after(last)?)),
            // Masterminds/semver, which Porch uses, reads ~0.0.0 as "any version".
            Operator::Tilde if version.numbers == [0, 0, 0] => range(from, Unbounded),
            Operator::Tilde => range(from, Excluded(version.after(last.min(1))?)),
            Operator::Caret => {
                let breaking = version.numbers.iter().position(|number| *number > 0);
                range(from, Excluded(version.after(breaking.unwrap_or(last))?))
            }
        })
    }

    pub(super) fn contains(&self, version: &Version) -> bool {
        // The semver crate includes build metadata in its order; semver precedence does not.
        let version = Version {
            build: BuildMetadata::EMPTY,
            ..version.clone()
        };
        (self.from.as_ref(), self.to.as_ref()).contains(&version) == self.inside
    }

    /// Returns whether the range was written with a pre-release and therefore admits pre-releases.
    pub(super) fn names_pre_release(&self) -> bool {
        self.names_pre_release
    }
}

/// Splits a text at a mark; `None` if nothing follows the mark.
fn cut_suffix(text: &str, mark: char) -> Option<(&str, &str)> {
    match text.split_once(mark) {
        Some((_, "")) => None,
        Some(parts) => Some(parts),
        None => Some((text, "")),
    }
}

fn too_large() -> String {
    "has a number that is too large".to_owned()
}
