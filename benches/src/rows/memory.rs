//! Measures the memory of the runner itself.
//!
//! Functions are separate processes, so `cat` is sufficient.

use anyhow::Result;
use futures::{StreamExt, TryStreamExt, stream};

use super::{Effort, large::LARGE};
use crate::{
    client::Client,
    functions::{Function, Functions},
    list, process,
    runner::Runner,
    table::{Goal, Quantity, Row, Table},
};

const CALLERS: usize = 16;

/// Goal for the number of copies of a list: one for the request, one for the response.
const COPIES: f64 = 2.0;

pub(super) async fn measure(
    functions: &Functions,
    effort: Effort,
    table: &mut Table,
) -> Result<()> {
    let runner = Runner::start(functions, 1)?;
    let client = Client::connect(runner.address(), Function::Cat).await?;
    table.push(Row::limited(
        "runner, resident, idle",
        process::resident(runner.pid())?,
        15_000_000,
    ));
    many_calls(&client, effort).await?;
    let name = format!("runner, resident, after {} calls", effort.many_calls);
    table.push(Row::limited(
        name,
        process::resident(runner.pid())?,
        30_000_000,
    ));
    drop(runner);

    for function in [Function::Cat, Function::Go] {
        let runner = Runner::start(functions, 1)?;
        let client = Client::connect(runner.address(), function).await?;
        table.push(peak_of("runner", runner.pid(), &client, function).await?);
    }
    Ok(())
}

pub(super) async fn many_calls(client: &Client, effort: Effort) -> Result<()> {
    let list = list::of_items(10);
    stream::iter(0..effort.many_calls)
        .map(|_| client.evaluate(&list))
        .buffer_unordered(CALLERS)
        .try_for_each(async |_| Ok(()))
        .await
}

/// Measures the additional peak memory of an idle server for one large list.
///
/// The unit is the larger one of request and response.
pub(super) async fn peak_of(
    server: &str,
    pid: u32,
    client: &Client,
    function: Function,
) -> Result<Row> {
    // Large enough to take the same code paths as the large list.
    client.evaluate(&list::of_items(250)).await?;
    process::forget_peak(pid)?;
    let before = process::resident(pid)?;
    let list = list::of_bytes(LARGE);
    let answer = client.evaluate(&list).await?;
    Ok(Row {
        name: format!("{server}, {}, a list of 5 MB", function.name()),
        floor: Some(Quantity::Bytes(list.len().max(answer.len()) as u64)),
        ours: Quantity::Bytes(process::peak(pid)?.saturating_sub(before)),
        goal: Goal::AtMost(COPIES),
    })
}
