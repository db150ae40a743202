//! Measures the wrapper alone: its cost in every function pod.

use std::{fs, time::Duration};

use anyhow::Result;

use super::{Effort, memory::many_calls, memory::peak_of};
use crate::{
    client::Client,
    functions::{Function, Functions},
    process,
    samples::Samples,
    table::{Goal, Quantity, Row, Table},
    wrapper::Wrapper,
};

const LISTENS: Duration = Duration::from_millis(5);

pub(super) async fn measure(
    functions: &Functions,
    effort: Effort,
    table: &mut Table,
) -> Result<()> {
    let cat = functions.path(Function::Cat);
    let mut listens = Samples::default();
    for _ in 0..effort.calls {
        listens.push(Wrapper::start(&cat)?.listened_after());
    }
    table.push(Row {
        name: "wrapper, listens after its start".to_owned(),
        floor: None,
        ours: Quantity::Time(listens.median()),
        goal: Goal::Within(LISTENS),
    });

    table.push(Row::limited(
        "wrapper, size of the program",
        fs::metadata(Wrapper::program()?)?.len(),
        3_000_000,
    ));
    let wrapper = Wrapper::start(&cat)?;
    let client = Client::connect(wrapper.address(), Function::Cat).await?;
    table.push(Row::limited(
        "wrapper, resident, idle",
        process::resident(wrapper.pid())?,
        4_000_000,
    ));
    many_calls(&client, effort).await?;
    table.push(Row::limited(
        format!("wrapper, resident, after {} calls", effort.many_calls),
        process::resident(wrapper.pid())?,
        12_000_000,
    ));
    drop(wrapper);

    for function in [Function::Cat, Function::Go] {
        let wrapper = Wrapper::start(&functions.path(function))?;
        let client = Client::connect(wrapper.address(), function).await?;
        table.push(peak_of("wrapper", wrapper.pid(), &client, function).await?);
    }
    Ok(())
}
