//! Scans the envelope of a ResourceList (`apiVersion`, `kind`, `results`) over bytes, and says
//! results the way package authors read them.
//!
//! ```text
//!         ┌→ json  ─┐ whole list, nothing else in it
//! scan ───┼→ block ─┼→ collector ─→ Envelope
//!         └→ yaml  ─┘ every event, when the others are not sure
//! ```
//!
//! The list itself is opaque: it is never copied, changed or built into a tree, and what `items`
//! hold is stepped over, not checked. Nothing here knows functions, processes or gRPC.
//!
//! Whatever the bytes, a scan does not panic, takes time linear in their number and uses bounded
//! stack: nesting and what aliases may expand to are limited.

mod anchors;
mod block;
mod collector;
mod error;
mod json;
mod lines;
mod result;
mod step;
mod yaml;

#[cfg(test)]
mod tests;

pub use error::ScanError;
pub use result::{Envelope, Field, File, FunctionResult, ResourceRef, Severity};

use collector::Collector;
use error::Stop;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads the envelope of `list`, YAML or JSON.
///
/// Fields that are unknown or of the wrong type inside `results` are left out: an odd result does
/// not make a list unreadable. A key of the envelope that occurs twice does, since it would be a
/// guess which of the two another reader follows.
///
/// This does not check what it has no need to read: a list with broken YAML deep in its items may
/// pass.
///
/// # Errors
/// When `list` is no ResourceList of a known version, or its envelope cannot be read.
pub fn scan(list: &[u8]) -> Result<Envelope, ScanError> {
    let text = list.strip_prefix(BYTE_ORDER_MARK).unwrap_or(list);
    match skim(text) {
        Ok(envelope) => Ok(envelope),
        Err(Stop::Failed(error)) => Err(error),
        Err(Stop::Unsure) => scan_whole(list),
    }
}

/// Reads the same as [`scan`], but parses every byte as YAML instead of stepping over what does
/// not matter.
///
/// It is what `scan` falls back to for unusual layouts and is measured against: where this
/// succeeds, `scan` gives the same answer.
///
/// # Errors
/// As for [`scan`], and for broken YAML anywhere in the list.
pub fn scan_whole(list: &[u8]) -> Result<Envelope, ScanError> {
    let list = list.strip_prefix(BYTE_ORDER_MARK).unwrap_or(list);
    let text = yaml::text(list)?;
    let mut collector = Collector::default();
    yaml::read(text, 1, &mut collector)?;
    collector.finish()
}

fn skim(list: &[u8]) -> Result<Envelope, Stop> {
    let mut collector = Collector::default();
    match list.iter().find(|byte| !byte.is_ascii_whitespace()) {
        None => return Err(ScanError::Empty.into()),
        Some(b'{') => json::read(list, &mut collector)?,
        Some(_) => block::read(list, &mut collector)?,
    }
    Ok(collector.finish()?)
}
