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
    /// Runners that are started one after the other to share the turns: what a call takes differs
    /// a little from one process of them to the next.
    runners: usize,
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

/// The exec runtime with processes that wait for their call, and without.
struct Runners {
    standby: Runner,
    plain: Runner,
}

/// A function at both runners.
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
                runners: 2,
                rounds: 4,
                calls: 15,
                long_rounds: 1,
                span: Duration::from_secs(2),
                many_calls: 1000,
            }
        } else {
            Self {
                runners: 4,
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

/// Every function by the exec runtime.
async fn exec(
    effort: Effort,
    wanted: impl Fn(&str) -> bool,
    functions: &Functions,
    table: &mut Table,
) -> Result<()> {
    for function in Function::ALL {
        if wanted("latency") {
            latency::measure(function, functions, effort, table).await?;
        }
        if !["throughput", "large"].into_iter().any(&wanted) {
            continue;
        }
        let runners = Runners::start(functions)?;
        let measured = runners.measured(function, functions).await?;
        if wanted("throughput") {
            throughput::measure(&measured, "", effort, table).await?;
        }
        if wanted("large") {
            large::measure(&measured, effort, table).await?;
        }
    }
    Ok(())
}

// === impl Runners ===

impl Runners {
    fn start(functions: &Functions) -> Result<Self> {
        Ok(Self {
            standby: Runner::start(functions, 1)?,
            plain: Runner::start(functions, 0)?,
        })
    }

    async fn measured<'a>(
        &self,
        function: Function,
        functions: &'a Functions,
    ) -> Result<Measured<'a>> {
        let measured = Measured {
            function,
            functions,
            standby: Client::connect(self.standby.address(), function).await?,
            plain: Client::connect(self.plain.address(), function).await?,
        };
        measured.agrees().await?;
        Ok(measured)
    }
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
}

fn row_name(function: Function, what: &str) -> String {
    format!("{}, {what}", function.name())
}
