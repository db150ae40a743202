//! Measures the scan of a 5 MB list: `cargo bench -p runner-resourcelist`.

use std::hint::black_box;
use std::time::{Duration, Instant};

use runner_resourcelist::{Envelope, ScanError, scan, scan_whole};

const SIZE: usize = 5 << 20;
const ROUNDS: usize = 101;
const RESULT: &str =
    "- {message: looked at it, severity: info, resourceRef: {kind: Pod, name: p}}\n";

type Scan = fn(&[u8]) -> Result<Envelope, ScanError>;

fn main() {
    let block = block_list();
    let windows = block.replace('\n', "\r\n");
    let json = json_list(&["\n", "  "]);
    let dense = json_list(&["", ""]);
    println!(
        "{:<28} {:>9} {:>12} {:>12}",
        "list", "bytes", "fastest", "median"
    );
    report("a copy, to compare with", &block, ROUNDS, copy);
    report("block", &block, ROUNDS, scan);
    report("block, carriage returns", &windows, ROUNDS, scan);
    report("json", &dense, ROUNDS, scan);
    report("json, pretty", &json, ROUNDS, scan);
    report("block, every byte parsed", &block, 5, scan_whole);
}

fn report(name: &str, list: &str, rounds: usize, scan: Scan) {
    let mut times: Vec<Duration> = (0..rounds)
        .map(|_| {
            let start = Instant::now();
            let envelope =
                scan(black_box(list.as_bytes())).expect("a bench list is a ResourceList");
            black_box(envelope);
            start.elapsed()
        })
        .collect();
    times.sort();
    let (fastest, median) = (times[0], times[rounds / 2]);
    println!(
        "{name:<28} {:>9} {fastest:>12.2?} {median:>12.2?}",
        list.len()
    );
}

fn copy(list: &[u8]) -> Result<Envelope, ScanError> {
    black_box(list.to_vec());
    Ok(Envelope::default())
}

fn block_list() -> String {
    let mut list =
        String::from("apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems:\n");
    for index in 0.. {
        if list.len() > SIZE {
            break;
        }
        list.push_str(&format!(
            "- apiVersion: apps/v1\n  kind: Deployment\n  metadata:\n    name: shop-{index}\n    \
             annotations:\n      internal.config.kubernetes.io/path: 'shop/{index}.yaml'\n      \
             note: |\n        results:\n        - kind: ResourceList\n\n  spec:\n    replicas: 3\n    \
             template:\n      spec:\n        containers:\n        - name: main\n          \
             image: example.com/shop:v1\n          args: [\"--port\", \"8080\"]\n"
        ));
    }
    format!("{list}results:\n{RESULT}{RESULT}")
}

fn json_list(space: &[&str; 2]) -> String {
    let [line, indent] = space;
    let mut list = format!(
        "{{{line}{indent}\"apiVersion\":\"config.kubernetes.io/v1\",{line}{indent}\"items\":[{line}"
    );
    for index in 0.. {
        if list.len() > SIZE {
            break;
        }
        let comma = if index > 0 { "," } else { "" };
        list.push_str(&format!(
            "{comma}{{{line}{indent}{indent}\"apiVersion\":\"apps/v1\",{line}{indent}{indent}\
             \"kind\":\"Deployment\",{line}{indent}{indent}\"metadata\":{{\"name\":\"shop-{index}\",\
             {line}{indent}{indent}{indent}\"annotations\":{{\"note\":\"results: \\\"none\\\"\"}}}},\
             {line}{indent}{indent}\"spec\":{{\"replicas\":3,\"containers\":[{{\"name\":\"main\",\
             {line}{indent}{indent}{indent}\"image\":\"example.com/shop:v1\"}}]}}}}"
        ));
    }
    let result = "{\"message\":\"looked at it\",\"severity\":\"info\"}";
    format!("{list}],{line}{indent}\"results\":[{result},{result}],\"kind\":\"ResourceList\"}}")
}
