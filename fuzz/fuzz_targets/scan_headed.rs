//! Any bytes under the keys of a ResourceList, so that all of them reach the parts past the checks;
//! the first byte says in which layout.
#![no_main]

use libfuzzer_sys::fuzz_target;
use runner_resourcelist::{scan, scan_whole};

const BLOCK: &[u8] = b"apiVersion: config.kubernetes.io/v1\nkind: ResourceList\n";
const ITEMS: &[u8] = b"apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems:\n- a: &a b\n";
const JSON: &[u8] = br#"{"apiVersion":"config.kubernetes.io/v1","kind":"ResourceList","results":["#;

fuzz_target!(|input: &[u8]| {
    let Some((layout, rest)) = input.split_first() else { return };
    let (head, tail): (&[u8], &[u8]) = match layout % 4 {
        0 => (BLOCK, b""),
        1 => (ITEMS, b"\nresults:\n- message: last\n"),
        2 => (JSON, b"]}"),
        _ => (ITEMS, b""),
    };
    let list = [head, rest, tail].concat();
    let quick = scan(&list);
    if let Ok(whole) = scan_whole(&list) {
        assert_eq!(quick, Ok(whole));
    }
});
