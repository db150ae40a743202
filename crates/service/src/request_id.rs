//! A name for each request, for logs and for the person who asks about one.

use std::{
    hash::{BuildHasher, RandomState},
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use http::HeaderMap;

const MAX_LENGTH: usize = 128;

/// The caller's `x-request-id`, or a new one.
pub(crate) fn of(headers: &HeaderMap) -> String {
    let given = headers.get("x-request-id").and_then(|id| id.to_str().ok());
    match given {
        Some(id) if !id.is_empty() && id.len() <= MAX_LENGTH => id.to_owned(),
        _ => fresh(),
    }
}

/// Random for each process, counted within it.
fn fresh() -> String {
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
    fn the_callers_name_is_kept_and_others_differ() {
        let mut headers = HeaderMap::new();
        assert_ne!(of(&headers), of(&headers));
        headers.insert("x-request-id", "render-7".parse().unwrap());
        assert_eq!(of(&headers), "render-7");
    }
}
