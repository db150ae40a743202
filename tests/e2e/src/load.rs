//! Callers that call again and again, and what becomes of their calls.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use tokio::task::JoinSet;
use tonic::Status;

use crate::{connect, evaluate, eventually, resource_list};

/// A number of callers at one runner, each on a connection of its own. One whose call fails makes
/// no more.
pub struct Load {
    callers: JoinSet<()>,
    record: Arc<Record>,
}

#[derive(Default)]
struct Record {
    over: AtomicBool,
    answers: AtomicUsize,
    failures: Mutex<Vec<Status>>,
}

// === impl Load ===

impl Load {
    /// Starts them; the function must return its input as it is.
    #[must_use]
    pub fn start(callers: usize, address: &str, image: &str) -> Self {
        Self::start_with(callers, address, image, &resource_list(&[], 3))
    }

    /// The same with a resource list of the test's own.
    #[must_use]
    pub fn start_with(callers: usize, address: &str, image: &str, list: &str) -> Self {
        let record = Arc::<Record>::default();
        let mut tasks = JoinSet::new();
        for _ in 0..callers {
            let (record, address) = (record.clone(), address.to_owned());
            let (image, list) = (image.to_owned(), list.to_owned());
            tasks.spawn(async move { call(&record, &address, &image, &list).await });
        }
        Self {
            callers: tasks,
            record,
        }
    }

    /// Calls answered by now.
    #[must_use]
    pub fn answers(&self) -> usize {
        self.record.answers.load(Ordering::SeqCst)
    }

    /// Calls that failed by now.
    #[must_use]
    pub fn failures(&self) -> Vec<Status> {
        self.record.failures().clone()
    }

    /// Waits for more answers, and for no failure.
    pub async fn goes_on(&self, answers: usize) {
        let wanted = self.answers() + answers;
        eventually("more answers", async || {
            assert!(self.failures().is_empty(), "{:?}", self.failures());
            self.answers() >= wanted
        })
        .await;
    }

    /// Waits until every caller has had a failure.
    pub async fn breaks(mut self) -> Vec<Status> {
        while let Some(ended) = self.callers.join_next().await {
            ended.expect("a caller does not panic");
        }
        self.failures()
    }

    /// Ends the callers after the calls they are making, and returns how many were answered in all.
    pub async fn ends_well(mut self) -> usize {
        self.record.over.store(true, Ordering::SeqCst);
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
}

async fn call(record: &Record, address: &str, image: &str, list: &str) {
    let mut client = connect(address).expect("an address");
    while !record.over.load(Ordering::SeqCst) {
        match evaluate(&mut client, image, list).await {
            Ok(answer) if answer.resource_list.trim_ascii() == list.trim_ascii().as_bytes() => {
                record.answers.fetch_add(1, Ordering::SeqCst);
            }
            Ok(answer) => {
                let text = String::from_utf8_lossy(&answer.resource_list);
                let wrong = Status::data_loss(format!("not the function's answer: {text}"));
                return record.failures().push(wrong);
            }
            Err(status) => return record.failures().push(status),
        }
    }
}
