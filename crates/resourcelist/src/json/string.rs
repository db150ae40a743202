//! Finds the end of JSON strings and decodes them.

use std::borrow::Cow;

use memchr::{memchr, memchr2};

/// Returns the index after the closing quote of the string whose opening quote is at `start`.
pub(super) fn end(list: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        at += memchr2(b'"', b'\\', list.get(at..)?)?;
        if list.get(at) == Some(&b'"') {
            return Some(at + 1);
        }
        at += 2;
    }
}

/// Decodes the text between the quotes; returns `None` if it is not valid JSON.
pub(super) fn decode(inner: &[u8]) -> Option<Cow<'_, str>> {
    let text = std::str::from_utf8(inner).ok()?;
    // YAML folds line breaks inside quotes; JSON does not allow them.
    if inner.iter().any(|byte| *byte < b' ') {
        return None;
    }
    if memchr(b'\\', inner).is_none() {
        return Some(Cow::Borrowed(text));
    }
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((plain, escape)) = rest.split_once('\\') {
        decoded.push_str(plain);
        let (character, after) = unescape(escape)?;
        decoded.push(character);
        rest = after;
    }
    decoded.push_str(rest);
    Some(Cow::Owned(decoded))
}

/// Decodes the escape sequence after a backslash; returns the character and the remaining text.
fn unescape(escape: &str) -> Option<(char, &str)> {
    let mut characters = escape.chars();
    let character = match characters.next()? {
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'u' => return utf16(characters.as_str()),
        same @ ('"' | '\\' | '/') => same,
        _ => return None,
    };
    Some((character, characters.as_str()))
}

fn utf16(digits: &str) -> Option<(char, &str)> {
    let (first, after) = unit(digits)?;
    if let Some((second, after_pair)) = after.strip_prefix("\\u").and_then(unit)
        && let Some(Ok(character)) = char::decode_utf16([first, second]).next()
        && u32::from(character) > 0xffff
    {
        return Some((character, after_pair));
    }
    // Half a surrogate pair is replaced, as the usual encoders do.
    let character = char::from_u32(u32::from(first)).unwrap_or(char::REPLACEMENT_CHARACTER);
    Some((character, after))
}

fn unit(digits: &str) -> Option<(u16, &str)> {
    let (digits, after) = digits.split_at_checked(4)?;
    // The standard parser would also accept a sign.
    let are_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let unit = u16::from_str_radix(digits, 16).ok().filter(|_| are_hex)?;
    Some((unit, after))
}
