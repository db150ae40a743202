//! Reads the envelope of a ResourceList (`apiVersion`, `kind`, `results`) directly from its bytes
//! and formats results for package authors.
//!
//! ```text
//!         ┌→ json  ─┐ a list that is JSON throughout
//! scan ───┼→ block ─┼→ collector ─→ Envelope
//!         └→ yaml  ─┘ every event, as the fallback for the other two
//! ```
//!
//! The list itself is opaque: it is never copied, changed or parsed into a tree, and the contents
//! of `items` are skipped without validation. This crate is independent of functions,
//! processes and gRPC.
//!
//! For any input, a scan does not panic, takes time linear in the number of bytes and uses bounded
//! stack: the nesting depth and the expansion of aliases are limited.

mod anchors;
mod block;
mod collector;
mod error;
mod event;
mod json;
mod lines;
mod result;
mod yaml;

#[cfg(test)]
mod tests;

pub use error::ScanError;
pub use result::{Envelope, Field, File, FunctionResult, ResourceRef, Severity};

use collector::Collector;
use error::FastScanError;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads the envelope of `list`, which is YAML or JSON.
///
/// Unknown fields inside `results`, and fields of the wrong type, are left out: a malformed result
/// does not make a list unreadable. A duplicate key of the envelope is an error, since other
/// readers might use either of the two.
///
/// Skipped parts are not validated: a list with invalid YAML inside its items may pass.
///
/// # Errors
/// Returns an error if `list` is not a ResourceList of a known version, or if its envelope cannot
/// be read.
pub fn scan(list: &[u8]) -> Result<Envelope, ScanError> {
    let text = list.strip_prefix(BYTE_ORDER_MARK).unwrap_or(list);
    match scan_fast(text) {
        Ok(envelope) => Ok(envelope),
        Err(FastScanError::Invalid(error)) => Err(error),
        Err(FastScanError::UnsupportedLayout) => scan_whole(list),
    }
}

/// Reads the same envelope as [`scan`], but parses every byte as YAML instead of skipping parts.
///
/// `scan` uses it as the fallback for unusual layouts, and tests use it as the reference: if this
/// function succeeds, `scan` returns the same envelope.
///
/// # Errors
/// Returns the same errors as [`scan`], and an error for invalid YAML anywhere in the list.
pub fn scan_whole(list: &[u8]) -> Result<Envelope, ScanError> {
    let list = list.strip_prefix(BYTE_ORDER_MARK).unwrap_or(list);
    let text = yaml::text(list)?;
    let mut collector = Collector::default();
    yaml::read(text, 1, &mut collector)?;
    collector.finish()
}

/// Reads the envelope of a list in a usual layout without parsing its items.
fn scan_fast(list: &[u8]) -> Result<Envelope, FastScanError> {
    let mut collector = Collector::default();
    match list.iter().find(|byte| !byte.is_ascii_whitespace()) {
        None => return Err(ScanError::Empty.into()),
        Some(b'{') => json::read(list, &mut collector)?,
        Some(_) => block::read(list, &mut collector)?,
    }
    Ok(collector.finish()?)
}
