use runner_core::ImageReference;

use super::Table;
use crate::testing::DEFAULT_PREFIX;

mod matching;
mod precedence;
mod problems;

const SHA: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn messages(table: &Table) -> Vec<String> {
    table.problems().iter().map(ToString::to_string).collect()
}

fn parse(image: &str) -> ImageReference {
    ImageReference::qualified(image, DEFAULT_PREFIX).unwrap()
}
