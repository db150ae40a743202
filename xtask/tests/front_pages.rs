//! Checks the front pages of the library crates that people outside this project would use.

use std::fs;

use runner_devtools::root;

const CRATES: [&str; 5] = ["client", "core", "package", "pool", "yaml"];

/// Returns whether the comment at the top of a file has a code block that doctests run.
fn has_runnable_example(source: &str) -> bool {
    let page = source.lines().map_while(|line| line.strip_prefix("//!"));
    // Every second fence ends a block.
    let mut fences = page.filter_map(|line| line.trim().strip_prefix("```"));
    std::iter::from_fn(|| {
        let language = fences.next()?;
        fences.next();
        Some(language)
    })
    .any(|language| matches!(language, "" | "rust"))
}

#[test]
fn every_front_page_has_a_runnable_example() {
    for name in CRATES {
        let file = root().join("crates").join(name).join("src/lib.rs");
        let source = fs::read_to_string(&file).unwrap();
        assert!(
            has_runnable_example(&source),
            "{} has no example that doctests run",
            file.display()
        );
    }
}

#[test]
fn ignores_blocks_that_are_not_run() {
    assert!(has_runnable_example(
        "//! ```text\n//! a\n//! ```\n//! ```\n//! run();\n//! ```\n"
    ));
    assert!(!has_runnable_example("//! ```text\n//! a\n//! ```\n"));
    assert!(!has_runnable_example("//! ```no_run\n//! a();\n//! ```\n"));
    assert!(!has_runnable_example(
        "fn a() {}\n/// ```\n/// run();\n/// ```\n"
    ));
}
