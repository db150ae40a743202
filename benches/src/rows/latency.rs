//! Measures the duration of a call with a single caller.

use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;

use super::{Effort, Measured, Runners, row_name};
use crate::{
    client::Client,
    floor,
    functions::{Function, Functions},
    list,
    samples::Samples,
    table::{Goal, Quantity, Row, Table},
};

/// Pause between two calls, about that of a pipeline.
pub(super) const APART: Duration = Duration::from_millis(20);

/// Goal for the cost over the floor without standby.
const OVER_FLOOR: Duration = Duration::from_micros(400);

/// Goal for the cost of a trivial function over the floor.
const OWN_COST: Duration = Duration::from_micros(500);

/// Factor for the number of rounds of back-to-back calls.
///
/// Such calls take little time, and their goal is about a small difference to the floor.
const CLOSER: usize = 4;

/// Durations of the floor and of some clients with the same pause, measured in turns.
pub(super) struct Turns<const CLIENTS: usize> {
    pub(super) floor: Samples,
    pub(super) ours: [Samples; CLIENTS],
}

pub(super) async fn measure(
    function: Function,
    functions: &Functions,
    effort: Effort,
    table: &mut Table,
) -> Result<()> {
    let [one, hundred] = [1, 100].map(list::of_items);
    let (mut apart, mut back_to_back) = (Turns::default(), Turns::default());
    let mut large = Turns::default();
    let few = Effort {
        rounds: effort.rounds / effort.runners,
        ..effort
    };
    let many = Effort {
        rounds: match function {
            Function::Python => few.rounds,
            Function::Go | Function::Cat => few.rounds * CLOSER,
        },
        ..effort
    };
    for _ in 0..effort.runners {
        let runners = Runners::start(functions)?;
        let measured = runners.measured(function, functions).await?;
        let clients = [&measured.standby, &measured.plain];
        apart.take(&measured, clients, &one, APART, few).await?;
        back_to_back
            .take(&measured, clients, &one, Duration::ZERO, many)
            .await?;
        if function != Function::Cat {
            let clients = [&measured.standby];
            large.take(&measured, clients, &hundred, APART, few).await?;
        }
    }
    let mut push = |what: &str, floor: &Samples, ours: &Samples, goal| {
        table.push(Row {
            name: row_name(function, what),
            floor: Some(Quantity::Time(floor.median())),
            ours: Quantity::Time(ours.median()),
            goal,
        });
    };
    let [standby_apart, plain_apart] = &apart.ours;
    let [standby, plain] = &back_to_back.ours;
    let off = "1 item, standby off, back to back";
    // The runner's cost is lost in the noise of a function that takes long to start.
    let off_goal = match function {
        Function::Python => Goal::Known,
        Function::Go | Function::Cat => Goal::Over(OVER_FLOOR),
    };
    if function == Function::Cat {
        // `cat` itself costs nothing, so everything over the floor is the runner's cost.
        push(off, &back_to_back.floor, plain, Goal::Over(OWN_COST));
        push(
            "1 item, standby, 20 ms apart",
            &apart.floor,
            standby_apart,
            Goal::Known,
        );
        return Ok(());
    }
    push(
        "1 item, standby, 20 ms apart",
        &apart.floor,
        standby_apart,
        Goal::AtMost(0.55),
    );
    push(
        "1 item, standby, back to back",
        &back_to_back.floor,
        standby,
        Goal::AtMost(0.8),
    );
    push(off, &back_to_back.floor, plain, off_goal);
    push(
        "1 item, standby off, 20 ms apart",
        &apart.floor,
        plain_apart,
        Goal::Known,
    );
    push(
        "100 items, standby, 20 ms apart",
        &large.floor,
        &large.ours[0],
        Goal::Known,
    );
    Ok(())
}

// === impl Turns ===

impl<const CLIENTS: usize> Default for Turns<CLIENTS> {
    fn default() -> Self {
        Self {
            floor: Samples::default(),
            ours: std::array::from_fn(|_| Samples::default()),
        }
    }
}

impl<const CLIENTS: usize> Turns<CLIENTS> {
    pub(super) async fn take(
        &mut self,
        measured: &Measured<'_>,
        clients: [&Client; CLIENTS],
        list: &Bytes,
        pause: Duration,
        effort: Effort,
    ) -> Result<()> {
        let program = measured.functions.path(measured.function);
        let lines: Result<Vec<_>> = clients.iter().map(|client| client.line(list)).collect();
        let mut lines = lines?;
        for round in 0..effort.rounds {
            // The floor is first or last, and the last client last or first, in alternation, so
            // that both follow the same predecessors.
            for turn in 0..=CLIENTS {
                // Lets the tasks of other connections answer pings.
                tokio::task::yield_now().await;
                let whose = if round % 2 == 0 { turn } else { CLIENTS - turn };
                for call in 0..=effort.calls {
                    rest(pause).await;
                    let (samples, time) = match whose.checked_sub(1) {
                        None => (&mut self.floor, floor::time(&program, list)?),
                        Some(it) => (&mut self.ours[it], lines[it].time()?),
                    };
                    // The first call of a turn is affected by the previous turn and does not count.
                    if call > 0 {
                        samples.push(time);
                    }
                }
            }
        }
        Ok(())
    }
}

/// Sleeps, unless the pause is zero: a timer of zero would still take until the clock's next tick.
async fn rest(pause: Duration) {
    if !pause.is_zero() {
        tokio::time::sleep(pause).await;
    }
}
