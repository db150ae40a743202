//! One caller: how long a call takes.

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

/// A pipeline's calls come about this far apart.
pub(super) const APART: Duration = Duration::from_millis(20);

/// The most that standby off may cost over the floor.
const OVER_FLOOR: Duration = Duration::from_micros(400);

/// The most that a trivial function may cost over the floor.
const OWN_COST: Duration = Duration::from_micros(500);

/// Calls that follow each other closely take little time, and the difference to the floor that a goal
/// is about is small: so many times the turns.
const CLOSER: usize = 4;

/// Times of the floor and of some clients at one pace, measured in turns.
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
    // What we add is lost in the noise of a function that takes long to start.
    let off_goal = match function {
        Function::Python => Goal::Known,
        Function::Go | Function::Cat => Goal::Over(OVER_FLOOR),
    };
    if function == Function::Cat {
        // Its own cost is none: what is over the floor is ours.
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
            // The floor's turn comes first or last, and the last client's last or first, so that
            // both follow the same.
            for turn in 0..=CLIENTS {
                // Other connections have pings to answer.
                tokio::task::yield_now().await;
                let whose = if round % 2 == 0 { turn } else { CLIENTS - turn };
                for call in 0..=effort.calls {
                    rest(pause).await;
                    let (samples, time) = match whose.checked_sub(1) {
                        None => (&mut self.floor, floor::time(&program, list)?),
                        Some(it) => (&mut self.ours[it], lines[it].time()?),
                    };
                    // The first pays for what the turn before has left behind.
                    if call > 0 {
                        samples.push(time);
                    }
                }
            }
        }
        Ok(())
    }
}

/// A timer of no time at all still takes until the clock's next tick.
async fn rest(pause: Duration) {
    if !pause.is_zero() {
        tokio::time::sleep(pause).await;
    }
}
