//! Measures lists of 5 MB.

use anyhow::Result;

use super::{Effort, Measured, row_name};
use crate::{
    floor,
    functions::Function,
    list,
    samples::Samples,
    table::{Goal, Quantity, Row, Table},
};

/// Size of a list in bytes; with the additions of functions it stays below the default limit.
pub(super) const LARGE: usize = 5_000_000;

/// Number of calls in a round of functions that are quick with large lists.
const CALLS_OF_QUICK_FUNCTIONS: usize = 10;

pub(super) async fn measure(
    measured: &Measured<'_>,
    effort: Effort,
    table: &mut Table,
) -> Result<()> {
    let list = list::of_bytes(LARGE);
    let program = measured.functions.path(measured.function);
    let calls = match measured.function {
        Function::Go => 1,
        Function::Python | Function::Cat => CALLS_OF_QUICK_FUNCTIONS,
    };
    let (mut raw, mut ours) = (Samples::default(), Samples::default());
    for _ in 0..effort.long_rounds {
        for _ in 0..calls {
            raw.push(floor::time(&program, &list)?);
        }
        for _ in 0..calls {
            ours.push(measured.standby.time(&list).await?);
        }
    }
    table.push(Row {
        name: row_name(measured.function, "a list of 5 MB"),
        floor: Some(Quantity::Time(raw.median())),
        ours: Quantity::Time(ours.median()),
        goal: match measured.function {
            Function::Go => Goal::AtMost(1.15),
            // Transferring the bytes takes longer than such a function runs.
            Function::Python | Function::Cat => Goal::Known,
        },
    });
    Ok(())
}
