//! Measures calls per second and the slowest calls with many callers.

use std::{thread::available_parallelism, time::Duration};

use anyhow::Result;

use super::{Effort, Measured, row_name};
use crate::{
    floor,
    functions::Function,
    list,
    table::{Goal, Quantity, Row, Table},
};

/// Number of concurrent callers.
pub(super) const CALLERS: usize = 64;

/// Measures throughput; `way` is a prefix of the rows' names.
pub(super) async fn measure(
    measured: &Measured<'_>,
    way: &str,
    effort: Effort,
    table: &mut Table,
) -> Result<()> {
    let list = list::of_items(1);
    let program = measured.functions.path(measured.function);
    let cores = available_parallelism().map_or(1, usize::from);
    let (mut raw, mut ours) = (0.0, 0.0);
    let (mut fair, mut slowest) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..effort.long_rounds {
        raw += floor::throughput(&program, &list, cores, effort.span)?;
        let (samples, rate) = measured.standby.crowd(&list, CALLERS, effort.span).await?;
        ours += rate;
        // If calls are served in order, all wait equally long. The slowest calls of a turn are
        // compared with the rate of the same turn, because the machine's speed varies between
        // turns.
        fair += Duration::from_secs_f64(CALLERS as f64 / rate.max(f64::MIN_POSITIVE));
        slowest += samples.percentile(99);
    }
    let rounds = effort.long_rounds as f64;
    let (raw, ours) = (raw / rounds, ours / rounds);
    let (fair, slowest) = (fair.div_f64(rounds), slowest.div_f64(rounds));
    // For a trivial function only the runner's own cost remains, which another row measures.
    let goals = |goal| match measured.function {
        Function::Cat => Goal::Known,
        Function::Go | Function::Python => goal,
    };
    table.push(Row {
        name: row_name(
            measured.function,
            &format!("{way}64 callers (floor: {cores} at a time)"),
        ),
        floor: Some(Quantity::Rate(raw)),
        ours: Quantity::Rate(ours),
        goal: goals(Goal::AtLeast(0.9)),
    });
    table.push(Row {
        name: row_name(
            measured.function,
            &format!("{way}64 callers, p99 (floor: 64 / throughput)"),
        ),
        floor: Some(Quantity::Time(fair)),
        ours: Quantity::Time(slowest),
        goal: goals(Goal::AtMost(1.3)),
    });
    Ok(())
}
