//! Any bytes at all: a scan answers, and where the whole reading succeeds, the quick one agrees.
#![no_main]

use libfuzzer_sys::fuzz_target;
use runner_resourcelist::{scan, scan_whole};

fuzz_target!(|list: &[u8]| {
    let quick = scan(list);
    if let Ok(whole) = scan_whole(list) {
        assert_eq!(quick, Ok(whole));
    }
});
