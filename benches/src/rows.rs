//! What is measured: a module for each group of rows. Another way of running functions joins as
//! another server whose clients the same groups are given.

mod large;
mod latency;
mod memory;
mod pods;
mod pool;
mod throughput;
mod wrapper;

use std::time::Duration;

use anyhow::{Result, ensure};

use crate::{
    Options, client::Client, floor, functions::Function, functions::Functions, list,
    runner::Runner, table::Table,
};

/// How much of everything.
#[derive(Clone, Copy, Debug)]
struct Effort {
    /// Turns of floor and ours.
    rounds: usize,
    /// Calls in each turn.
    calls: usize,
    /// Turns of floor and ours under load, and with large lists.
    long_rounds: usize,
    /// How long each turn under load takes.
    span: Duration,
    /// Calls before memory is looked at again.
    many_calls: usize,
}

/// A function at both runners: with processes that wait for their call, and without.
struct Measured<'a> {
    function: Function,
    functions: &'a Functions,
    standby: Client,
    plain: Client,
}

// === impl Effort ===

impl Effort {
    fn of(options: &Options) -> Self {
        if options.quick {
            Self {
                rounds: 4,
                calls: 15,
                long_rounds: 1,
                span: Duration::from_secs(2),
                many_calls: 1000,
            }
        } else {
            Self {
                rounds: 12,
                calls: 25,
                long_rounds: 3,
                span: Duration::from_secs(5),
                many_calls: 10_000,
            }
        }
    }
}

/// Measures every row that is asked for.
pub(crate) async fn measure(
    options: &Options,
    functions: &Functions,
    table: &mut Table,
) -> Result<()> {
    let effort = Effort::of(options);
    let wanted = |group: &str| group.contains(&options.only);
    if ["latency", "throughput", "large"].into_iter().any(wanted) {
        exec(effort, wanted, functions, table).await?;
    }
    if wanted("memory") {
        memory::measure(functions, effort, table).await?;
    }
    if wanted("wrapper") {
        wrapper::measure(functions, effort, table).await?;
    }
    if wanted("pods") {
        pods::measure(functions, effort, table).await?;
    }
    if wanted("pool") {
        pool::measure(table)?;
    }
    Ok(())
}

/// The exec runtime: every function, with processes that wait for their call, and without.
async fn exec(
    effort: Effort,
    wanted: impl Fn(&str) -> bool,
    functions: &Functions,
    table: &mut Table,
) -> Result<()> {
    let standby = Runner::start(functions, 1)?;
    let plain = Runner::start(functions, 0)?;
    for function in Function::ALL {
        let measured = Measured {
            function,
            functions,
            standby: Client::connect(standby.address(), function).await?,
            plain: Client::connect(plain.address(), function).await?,
        };
        measured.agrees().await?;
        if wanted("latency") {
            latency::measure(&measured, effort, table).await?;
        }
        if wanted("throughput") {
            throughput::measure(&measured, "", effort, table).await?;
        }
        if wanted("large") {
            large::measure(&measured, effort, table).await?;
        }
    }
    Ok(())
}

// === impl Measured ===

impl Measured<'_> {
    /// What is measured must be the same thing.
    async fn agrees(&self) -> Result<()> {
        let list = list::of_items(3);
        let raw = floor::run(&self.functions.path(self.function), &list)?;
        for client in [&self.standby, &self.plain] {
            let ours = client.evaluate(&list).await?;
            ensure!(
                raw == ours,
                "{} answers something else",
                self.function.name()
            );
        }
        Ok(())
    }

    fn row_name(&self, what: &str) -> String {
        format!("{}, {what}", self.function.name())
    }
}
