//! What the runner itself holds. Functions are other processes: `cat` shows it as well as any.

use anyhow::Result;
use futures::{StreamExt, TryStreamExt, stream};

use super::{Effort, large::LARGE};
use crate::{
    client::Client,
    functions::{Function, Functions},
    list, memory,
    runner::Runner,
    table::{Goal, Quantity, Row, Table},
};

const CALLERS: usize = 16;

/// One on its way in, one on its way out.
const COPIES: f64 = 2.0;

pub(super) async fn measure(
    functions: &Functions,
    effort: Effort,
    table: &mut Table,
) -> Result<()> {
    let runner = Runner::start(functions, 1)?;
    let client = Client::connect(runner.address(), Function::Cat).await?;
    let mut push = |name: String, bytes, limit| {
        table.push(Row {
            name,
            floor: None,
            ours: Quantity::Bytes(bytes),
            goal: Goal::Limit(limit),
        });
    };
    push(
        "resident, idle".to_owned(),
        memory::resident(runner.pid())?,
        15_000_000,
    );
    let list = list::of_items(10);
    stream::iter(0..effort.many_calls)
        .map(|_| client.evaluate(&list))
        .buffer_unordered(CALLERS)
        .try_for_each(async |_| Ok(()))
        .await?;
    let name = format!("resident, after {} calls", effort.many_calls);
    push(name, memory::resident(runner.pid())?, 30_000_000);
    drop(runner);

    for function in [Function::Cat, Function::Go] {
        let (copies, size) = peak(functions, function).await?;
        table.push(Row {
            name: format!(
                "{}, a list of 5 MB: resident in the runner",
                function.name()
            ),
            floor: Some(Quantity::Bytes(size)),
            ours: Quantity::Bytes(copies),
            goal: Goal::AtMost(COPIES),
        });
    }
    Ok(())
}

/// What a runner that was at rest needs more at most while it evaluates one large list, and how
/// large that is: the longer of what goes in and what comes out.
async fn peak(functions: &Functions, function: Function) -> Result<(u64, u64)> {
    let runner = Runner::start(functions, 1)?;
    let client = Client::connect(runner.address(), function).await?;
    // Large enough to take every path that the large one takes.
    client.evaluate(&list::of_items(250)).await?;
    memory::forget_peak(runner.pid())?;
    let before = memory::resident(runner.pid())?;
    let list = list::of_bytes(LARGE);
    let answer = client.evaluate(&list).await?;
    let size = list.len().max(answer.len()) as u64;
    Ok((memory::peak(runner.pid())?.saturating_sub(before), size))
}
