//! Parses the text of a tag constraint into its alternatives.

use super::{
    Alternative,
    range::{Operator, Partial, Range},
};
use crate::image::check_tag;

const MAX_LENGTH: usize = 512;
const OPERATOR_CHARACTERS: [char; 6] = ['<', '>', '=', '!', '~', '^'];

/// An optional operator and the word after it.
type Term<'a> = (Option<(Operator, &'a str)>, &'a str);

pub(super) fn alternatives(text: &str) -> Result<Vec<Alternative>, String> {
    if text.is_empty() {
        return Err("it is empty".to_owned());
    }
    if text.len() > MAX_LENGTH {
        return Err(format!("it is longer than {MAX_LENGTH} characters"));
    }
    text.split("||").map(alternative).collect()
}

fn alternative(text: &str) -> Result<Alternative, String> {
    if text.trim().is_empty() {
        return Err("one side of a \"||\" is empty".to_owned());
    }
    let mut terms = Vec::new();
    for part in text.split(',') {
        if part.trim().is_empty() {
            return Err("nothing stands between two commas, or beside one".to_owned());
        }
        terms.extend(split(part)?);
    }
    match terms.as_slice() {
        [(None, word)] => lone_word(word),
        terms => Ok(Alternative {
            name: None,
            ranges: ranges(terms)?,
        }),
    }
}

fn lone_word(word: &str) -> Result<Alternative, String> {
    match Partial::parse(word) {
        Ok(version) if version.has_wildcard() => Ok(Alternative {
            name: None,
            ranges: vec![Range::new(Operator::Equal, version)?],
        }),
        Ok(version) => Ok(Alternative {
            name: Some(word.to_owned()),
            ranges: vec![Range::new(Operator::Equal, version)?],
        }),
        Err(_) => {
            check_tag(word).map_err(|why| format!("tag {why}"))?;
            Ok(Alternative {
                name: Some(word.to_owned()),
                ranges: Vec::new(),
            })
        }
    }
}

fn ranges(terms: &[Term<'_>]) -> Result<Vec<Range>, String> {
    let mut ranges = Vec::new();
    let mut rest = terms;
    loop {
        rest = match rest {
            [] => return Ok(ranges),
            [(None, from), (None, "-"), (None, to), rest @ ..] => {
                ranges.push(Range::new(Operator::GreaterOrEqual, operand(from)?)?);
                ranges.push(Range::new(Operator::LessOrEqual, operand(to)?)?);
                rest
            }
            [(None, "-"), ..] => {
                return Err("a \"-\" must stand between two versions".to_owned());
            }
            [(None, word), rest @ ..] => {
                let version = Partial::parse(word).map_err(|why| {
                    format!("{word:?} {why}, and the name of a tag must stand alone")
                })?;
                ranges.push(Range::new(Operator::Equal, version)?);
                rest
            }
            [(Some((operator, written)), word), rest @ ..] => {
                let range = Partial::parse(word)
                    .and_then(|version| Range::new(*operator, version))
                    .map_err(|why| format!("{:?} {why}", format!("{written}{word}")))?;
                ranges.push(range);
                rest
            }
        }
    }
}

fn operand(word: &str) -> Result<Partial, String> {
    Partial::parse(word).map_err(|why| format!("{word:?} {why}"))
}

/// Splits `>= 0.4.0 <0.5.0` into operators and words; whitespace after an operator is ignored.
fn split(text: &str) -> Result<Vec<Term<'_>>, String> {
    let mut terms = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (written, after) = cut(rest, |c| !OPERATOR_CHARACTERS.contains(&c));
        let operator = match written {
            "" => None,
            written => {
                let operator = Operator::parse(written)
                    .ok_or_else(|| format!("{written:?} is not an operator"))?;
                Some((operator, written))
            }
        };
        let (word, after) = cut(after.trim_start(), |c| {
            c.is_whitespace() || OPERATOR_CHARACTERS.contains(&c)
        });
        if word.is_empty() {
            return Err(format!("no version follows {written:?}"));
        }
        terms.push((operator, word));
        rest = after.trim_start();
    }
    Ok(terms)
}

fn cut(text: &str, at: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(at).unwrap_or(text.len()))
}
