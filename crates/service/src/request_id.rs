//! Request IDs, which appear in logs and in the details of errors.

use std::{
    hash::{BuildHasher, RandomState},
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use http::HeaderMap;

const MAX_LENGTH: usize = 128;

/// Returns the caller's `x-request-id`, or a new ID if there is none of valid length.
pub(crate) fn from_headers(headers: &HeaderMap) -> String {
    let given = headers.get("x-request-id").and_then(|id| id.to_str().ok());
    match given {
        Some(id) if !id.is_empty() && id.len() <= MAX_LENGTH => id.to_owned(),
        _ => new_id(),
    }
}

/// Returns a random prefix of this process and a counter.
fn new_id() -> String {
    static PREFIX: OnceLock<u32> = OnceLock::new();
    static NEXT: AtomicU64 = AtomicU64::new(1);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "any 32 random bits will do"
    )]
    let prefix = PREFIX.get_or_init(|| RandomState::new().hash_one(std::process::id()) as u32);
    format!("{prefix:08x}-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_callers_id_and_generates_unique_ones() {
        let mut headers = HeaderMap::new();
        assert_ne!(from_headers(&headers), from_headers(&headers));
        headers.insert("x-request-id", "render-7".parse().unwrap());
        assert_eq!(from_headers(&headers), "render-7");
    }
}
