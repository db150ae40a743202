//! Tests of the guarantees of a scan, as tables and as properties.

mod bounds;
mod errors;
mod generate;
mod layouts;
mod properties;
mod results;

use crate::{Envelope, ScanError, scan, scan_whole};

/// Scans with both functions and checks that `scan` succeeds wherever `scan_whole` does.
fn scan_both(list: &str) -> Result<Envelope, ScanError> {
    let quick = scan(list.as_bytes());
    if let Ok(whole) = scan_whole(list.as_bytes()) {
        assert_eq!(
            quick.as_ref(),
            Ok(&whole),
            "the two readings differ on {list:?}"
        );
    }
    quick
}

fn uses_fast_path(list: &str) -> bool {
    crate::scan_fast(list.as_bytes()).is_ok()
}

fn messages(envelope: &Envelope) -> Vec<&str> {
    envelope
        .results
        .iter()
        .map(|result| result.message.as_str())
        .collect()
}
