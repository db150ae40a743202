//! The measurements, with a module for each group of rows.
//!
//! Another runtime can be added as another server; the same groups then measure clients of it.

mod against;
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

/// The numbers of rounds and calls in a run.
#[derive(Clone, Copy, Debug)]
struct Effort {
    /// Number of runners that are started one after the other and share the turns, because the
    /// duration of a call differs a little between processes.
    runners: usize,
    /// Number of turns of floor and runner.
    rounds: usize,
    /// Number of calls in each turn.
    calls: usize,
    /// Number of turns of floor and runner under load and with large lists.
    long_rounds: usize,
    /// Duration of each turn under load.
    span: Duration,
    /// Number of calls before memory is measured again.
    many_calls: usize,
}

/// Two runners with the exec runtime: one with standbys, one without.
struct Runners {
    standby: Runner,
    plain: Runner,
}

/// A function and its clients on both runners.
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

/// Measures every selected row.
pub(crate) async fn measure(
    options: &Options,
    functions: &Functions,
    table: &mut Table,
) -> Result<()> {
    let effort = Effort::of(options);
    if let Some(other) = &options.against {
        return against::measure(other, functions, effort, table).await;
    }
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

/// Measures every function in the exec runtime.
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
    /// Checks that floor and runners return the same output.
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
