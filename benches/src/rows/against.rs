//! Measures this build of the runner against another build, in turns in one run.
//!
//! The column "floor" is the other build, so a ratio of 1.00 means "as before".

use std::{path::Path, time::Duration};

use anyhow::Result;

use super::{
    Effort, Measured, large::LARGE, latency::APART, latency::Turns, memory::many_calls, row_name,
    throughput::CALLERS,
};
use crate::{
    client::Client,
    functions::{Function, Functions},
    list, process,
    runner::{self, Runner},
    samples::Samples,
    table::{Goal, Quantity, Row, Table},
};

/// Both builds with the same number of standbys, and clients of one function on them.
struct Builds {
    runners: [Runner; 2],
    clients: [Client; 2],
}

/// Durations and throughput of both builds: the other one first.
#[derive(Default)]
struct Samplings {
    apart: Turns<2>,
    back_to_back: Turns<2>,
    plain: Turns<2>,
    large: [Samples; 2],
    rate: [f64; 2],
    cpu: [Duration; 2],
    idle: [u64; 2],
    used: [u64; 2],
}

pub(super) async fn measure(
    other: &Path,
    functions: &Functions,
    effort: Effort,
    table: &mut Table,
) -> Result<()> {
    for function in [Function::Go, Function::Cat] {
        let mut sampled = Samplings::default();
        for _ in 0..effort.runners {
            sampled.sample(other, function, functions, effort).await?;
        }
        sampled.show(function, effort, table);
    }
    Ok(())
}

// === impl Builds ===

impl Builds {
    async fn start(
        other: &Path,
        function: Function,
        functions: &Functions,
        standby: usize,
    ) -> Result<Self> {
        let runners = [
            Runner::start_build(other, functions, standby)?,
            Runner::start_build(&runner::binary()?, functions, standby)?,
        ];
        let clients = [
            Client::connect(runners[0].address(), function).await?,
            Client::connect(runners[1].address(), function).await?,
        ];
        Ok(Self { runners, clients })
    }

    /// Returns the clients as the bench measures them against the floor.
    fn measured<'a>(&self, function: Function, functions: &'a Functions) -> Measured<'a> {
        let [standby, plain] = self.clients.clone();
        Measured {
            function,
            functions,
            standby,
            plain,
        }
    }
}

// === impl Samplings ===

impl Samplings {
    async fn sample(
        &mut self,
        other: &Path,
        function: Function,
        functions: &Functions,
        effort: Effort,
    ) -> Result<()> {
        let one = list::of_items(1);
        let without_standby = Builds::start(other, function, functions, 0).await?;
        let measured = without_standby.measured(function, functions);
        let clients = without_standby.clients.each_ref();
        self.plain
            .take(&measured, clients, &one, Duration::ZERO, effort)
            .await?;
        drop(without_standby);

        let builds = Builds::start(other, function, functions, 1).await?;
        for (build, runner) in builds.runners.iter().enumerate() {
            self.idle[build] += process::resident(runner.pid())?;
        }
        let measured = builds.measured(function, functions);
        let clients = builds.clients.each_ref();
        self.apart
            .take(&measured, clients, &one, APART, effort)
            .await?;
        self.back_to_back
            .take(&measured, clients, &one, Duration::ZERO, effort)
            .await?;
        for (build, client) in clients.into_iter().enumerate() {
            let pid = builds.runners[build].pid();
            let before = process::cpu_time(pid)?;
            let (samples, rate) = client.crowd(&one, CALLERS, effort.span).await?;
            let calls = u32::try_from(samples.len())?.max(1);
            self.cpu[build] += (process::cpu_time(pid)? - before) / calls;
            self.rate[build] += rate;
        }
        if function == Function::Cat {
            let large = list::of_bytes(LARGE);
            for _ in 0..effort.calls {
                for (build, client) in clients.into_iter().enumerate() {
                    self.large[build].push(client.time(&large).await?);
                }
            }
            for (build, client) in clients.into_iter().enumerate() {
                many_calls(client, effort).await?;
                self.used[build] += process::resident(builds.runners[build].pid())?;
            }
        }
        Ok(())
    }

    fn show(&self, function: Function, effort: Effort, table: &mut Table) {
        let runners = effort.runners as f64;
        let mut push = |what: &str, [other, ours]: [Quantity; 2]| {
            table.push(Row {
                name: row_name(function, what),
                floor: Some(other),
                ours,
                goal: Goal::Known,
            });
        };
        let medians = |turns: &Turns<2>| turns.ours.each_ref().map(median);
        let mean =
            |bytes: [u64; 2]| bytes.map(|sum| Quantity::Bytes((sum as f64 / runners) as u64));
        push("1 item, standby, 20 ms apart", medians(&self.apart));
        push("1 item, standby, back to back", medians(&self.back_to_back));
        push("1 item, standby off, back to back", medians(&self.plain));
        push(
            "64 callers",
            self.rate.map(|sum| Quantity::Rate(sum / runners)),
        );
        push(
            "64 callers, CPU time of the runner for a call",
            self.cpu.map(|sum| Quantity::Time(sum.div_f64(runners))),
        );
        push("resident, idle", mean(self.idle));
        if function == Function::Cat {
            push("a list of 5 MB", self.large.each_ref().map(median));
            push("resident, after many calls", mean(self.used));
        }
    }
}

fn median(samples: &Samples) -> Quantity {
    Quantity::Time(samples.median())
}
