//! Callers that call continuously, and the outcomes of their calls.

use std::{
    error::Error,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use runner_core::causes;
use runner_proto::evaluator::EvaluateFunctionResponse;
use tokio::task::JoinSet;
use tonic::{ConnectError, Status};

use crate::{connect, evaluate, eventually, resource_list};

/// Pause of a caller whose connection was refused.
const RECONNECT_PAUSE: Duration = Duration::from_millis(20);

/// Callers of one runner, each with its own connection.
///
/// A caller stops after its first failed call.
pub struct Load {
    callers: JoinSet<()>,
    record: Arc<Record>,
}

#[derive(Default)]
struct Record {
    stopped: AtomicBool,
    answers: AtomicUsize,
    refused: AtomicUsize,
    failures: Mutex<Vec<Status>>,
}

// === impl Load ===

impl Load {
    /// Starts callers of a function that returns its input unchanged.
    #[must_use]
    pub fn start(callers: usize, address: &str, image: &str) -> Self {
        Self::start_with(callers, address, image, &resource_list(&[], 3))
    }

    /// Starts callers before the runner listens, and waits until connections were refused.
    ///
    /// A caller that cannot connect retries until its first response; every other failure counts.
    pub async fn start_before_listening(callers: usize, address: &str, image: &str) -> Self {
        let load = Self::spawn(callers, address, image, &resource_list(&[], 3), true);
        eventually("refused callers", async || {
            assert!(load.failures().is_empty(), "{:?}", load.failures());
            load.record.refused.load(Ordering::SeqCst) >= callers
        })
        .await;
        load
    }

    /// Starts callers with the given ResourceList.
    #[must_use]
    pub fn start_with(callers: usize, address: &str, image: &str, list: &str) -> Self {
        Self::spawn(callers, address, image, list, false)
    }

    fn spawn(
        callers: usize,
        address: &str,
        image: &str,
        list: &str,
        before_listening: bool,
    ) -> Self {
        let record = Arc::<Record>::default();
        let mut tasks = JoinSet::new();
        for _ in 0..callers {
            let (record, address) = (record.clone(), address.to_owned());
            let (image, list) = (image.to_owned(), list.to_owned());
            tasks.spawn(async move {
                if !before_listening || await_listener(&record, &address, &image, &list).await {
                    call(&record, &address, &image, &list).await;
                }
            });
        }
        Self {
            callers: tasks,
            record,
        }
    }

    /// Returns the number of successful calls so far.
    #[must_use]
    pub fn answers(&self) -> usize {
        self.record.answers.load(Ordering::SeqCst)
    }

    /// Returns the failures so far.
    #[must_use]
    pub fn failures(&self) -> Vec<Status> {
        self.record.failures().clone()
    }

    /// Waits for this many more successful calls; a failure panics.
    pub async fn wait_for_answers(&self, answers: usize) {
        let wanted = self.answers() + answers;
        eventually("the expected number of answers", async || {
            assert!(self.failures().is_empty(), "{:?}", self.failures());
            self.answers() >= wanted
        })
        .await;
    }

    /// Waits until every caller has failed, and returns the failures.
    pub async fn wait_for_failures(mut self) -> Vec<Status> {
        while let Some(ended) = self.callers.join_next().await {
            ended.expect("a caller does not panic");
        }
        self.failures()
    }

    /// Stops the callers after their current calls and returns the number of successful calls.
    ///
    /// # Panics
    ///
    /// If a call failed.
    pub async fn stop_without_failures(mut self) -> usize {
        self.record.stopped.store(true, Ordering::SeqCst);
        while let Some(ended) = self.callers.join_next().await {
            ended.expect("a caller does not panic");
        }
        assert!(self.failures().is_empty(), "{:?}", self.failures());
        self.answers()
    }
}

// === impl Record ===

impl Record {
    fn failures(&self) -> std::sync::MutexGuard<'_, Vec<Status>> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts the outcome of a call, and returns whether it is the function's output.
    fn add(&self, outcome: Result<EvaluateFunctionResponse, Status>, list: &str) -> bool {
        let failure = match outcome {
            Ok(answer) if answer.resource_list.trim_ascii() == list.trim_ascii().as_bytes() => {
                self.answers.fetch_add(1, Ordering::SeqCst);
                return true;
            }
            Ok(answer) => {
                let text = String::from_utf8_lossy(&answer.resource_list);
                Status::data_loss(format!("not the function's answer: {text}"))
            }
            Err(status) => status,
        };
        self.failures().push(failure);
        false
    }
}

/// Returns whether a call failed because no connection could be made, so that nothing was sent.
fn failed_to_connect(status: &Status) -> bool {
    causes(status).any(<dyn Error>::is::<ConnectError>)
}

/// Calls until a connection can be made, and returns whether that call succeeded.
///
/// The call is counted like every other.
async fn await_listener(record: &Record, address: &str, image: &str, list: &str) -> bool {
    let mut client = connect(address).expect("an address");
    while !record.stopped.load(Ordering::SeqCst) {
        match evaluate(&mut client, image, list).await {
            Err(status) if failed_to_connect(&status) => {
                record.refused.fetch_add(1, Ordering::SeqCst);
                tokio::time::sleep(RECONNECT_PAUSE).await;
            }
            outcome => return record.add(outcome, list),
        }
    }
    false
}

async fn call(record: &Record, address: &str, image: &str, list: &str) {
    let mut client = connect(address).expect("an address");
    while !record.stopped.load(Ordering::SeqCst) {
        if !record.add(evaluate(&mut client, image, list).await, list) {
            return;
        }
    }
}
