//! Tests of the wrapper's size and memory, when idle and after evaluations.

use std::{
    fs,
    path::Path,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use runner_test_support::{LIST, ServerProcess, eventually, has_ended, list_of, resident_memory};
use tokio::task::JoinSet;

use crate::support::{Setup, wrapper_for_arm, wrapper_server};

const EVALUATIONS: usize = 10_000;
const CALLERS: usize = 64;

const PT_INTERP: u32 = 3;
const SHT_SYMTAB: u32 = 2;

/// The headers of an ELF file.
#[derive(Debug, PartialEq, Eq)]
struct Elf {
    machine: u16,
    is_static: bool,
    is_stripped: bool,
}

// === impl Elf ===

impl Elf {
    /// Reads the headers of a 64-bit little-endian file.
    fn read(path: &Path) -> Self {
        let file = fs::read(path).unwrap();
        assert_eq!(file[..6], *b"\x7fELF\x02\x01");
        let half = |at: usize| u16::from_le_bytes([file[at], file[at + 1]]);
        let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
        let offset = |at: usize| {
            usize::try_from(u64::from_le_bytes(file[at..at + 8].try_into().unwrap())).unwrap()
        };
        let mut segments =
            (0..half(56)).map(|n| word(offset(32) + usize::from(n) * usize::from(half(54))));
        let mut sections =
            (0..half(60)).map(|n| word(offset(40) + usize::from(n) * usize::from(half(58)) + 4));
        Self {
            machine: half(18),
            is_static: !segments.any(|kind| kind == PT_INTERP),
            is_stripped: !sections.any(|kind| kind == SHT_SYMTAB),
        }
    }
}

fn zombies(wrapper: &ServerProcess) -> usize {
    let children = wrapper.children().into_iter();
    children.filter(|pid| has_ended(*pid)).count()
}

#[test]
fn builds_a_small_static_stripped_binary() {
    let expected = match std::env::consts::ARCH {
        "x86_64" => 62,
        "aarch64" => 183,
        other => panic!("there is no image for {other}"),
    };
    let elf = Elf {
        machine: expected,
        is_static: true,
        is_stripped: true,
    };
    assert_eq!(Elf::read(wrapper_server()), elf);
    let size = fs::metadata(wrapper_server()).unwrap().len();
    println!("binary: {size} bytes");
    assert!(size <= 3_000_000, "{size} bytes");
}

#[tokio::test(flavor = "multi_thread")]
async fn leaves_nothing_behind_after_ten_thousand_evaluations() {
    let setup = Setup::new(&["/bin/busybox", "cat"]);
    let started = Instant::now();
    let wrapper = setup.start().await;
    println!("serving after {:?}", started.elapsed());
    let idle = resident_memory(wrapper.pid());
    println!("resident when idle: {} KiB", idle >> 10);
    assert!(idle <= 4_000_000, "{idle} bytes resident when idle");

    let client = wrapper.client().await;
    assert_eq!(list_of(client.call("cat").await), LIST);
    let descriptors = wrapper.resources().descriptors;
    let left = Arc::new(AtomicUsize::new(EVALUATIONS));
    let started = Instant::now();
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let (client, left) = (client.clone(), left.clone());
        callers.spawn(async move {
            let next = || {
                left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                    left.checked_sub(1)
                })
            };
            while next().is_ok() {
                assert_eq!(list_of(client.call("cat").await), LIST);
            }
        });
    }
    while let Some(caller) = callers.join_next().await {
        caller.unwrap();
    }
    println!("{EVALUATIONS} evaluations: {:?}", started.elapsed());

    let resident = resident_memory(wrapper.pid());
    println!("resident afterwards: {} KiB", resident >> 10);
    assert!(resident <= 12_000_000, "{resident} bytes resident");
    eventually("no zombie, and no descriptor more than before", || {
        zombies(&wrapper) == 0 && wrapper.resources().descriptors <= descriptors
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_on_64_bit_arm() {
    let program = wrapper_for_arm();
    let elf = Elf {
        machine: 183,
        is_static: true,
        is_stripped: true,
    };
    assert_eq!(Elf::read(program), elf);
    assert!(fs::metadata(program).unwrap().len() <= 3_000_000);
    let version = Command::new("qemu-aarch64-static")
        .arg(program)
        .arg("--version")
        .output()
        .unwrap();
    assert!(
        version.stdout.starts_with(b"wrapper-server "),
        "{version:?}"
    );
    let wrapper = Setup::script("cat")
        .under(["qemu-aarch64-static"])
        .program(program)
        .start()
        .await;
    assert_eq!(list_of(wrapper.client().await.call("cat").await), LIST);
}
