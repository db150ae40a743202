//! The driver's inbox: its messages, and a bounded channel for them.
//!
//! The driver never sends to its own inbox, so tasks may wait for room without a deadlock. Callers
//! do not wait: a request is refused if the driver does not keep up.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use runner_cluster::CreateOutcome;
use runner_core::{EvaluationError, Reason};
use runner_pool::{Create, Event, Function, PodName, RequestId, Uid, Waited};
use tokio::sync::{
    mpsc::{self, error::TrySendError},
    oneshot,
};
use tonic::transport::Channel;

use crate::{connection::Connection, survey::Survey};

/// Largest number of messages that wait for the driver (4096).
///
/// The driver handles a message in microseconds.
const CAPACITY: usize = 4096;

/// Delay after which a refused caller is asked to retry (1 s).
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// A message to the driver.
pub(crate) enum Message {
    /// A caller requests an evaluation.
    Request {
        id: RequestId,
        function: Arc<Function>,
        deadline: Instant,
        /// Span of the request; the start of a pod for it joins its trace.
        span: tracing::Span,
        reply: mpsc::UnboundedSender<Decision>,
    },
    /// An event that is passed to the pool unchanged.
    Event(Event),
    /// An attempt to create a pod has ended.
    Created {
        create: Create,
        outcome: CreateOutcome,
        /// Duration of the image's lookup.
        looked_up: Duration,
    },
    /// A wrapper announced that it listens.
    Announced {
        pod: PodName,
        token: String,
        address: IpAddr,
        reply: oneshot::Sender<bool>,
    },
    /// A pod answered when it was knocked at.
    Knocked(Uid),
    /// A pod was probed.
    Probed {
        name: PodName,
        uid: Uid,
        /// Connection over which the pod answered, if it did.
        answered: Option<Connection>,
    },
    /// A pod answers over another connection than the one in use.
    TargetAnswers {
        uid: Uid,
        connection: Connection,
    },
    /// Images that cannot be kept warm, with the reason.
    Cold(BTreeMap<String, String>),
    Drain(Duration),
    Survey(oneshot::Sender<Survey>),
}

/// The pool's decision about a request.
pub(crate) enum Decision {
    Assigned(Assigned),
    Rejected(EvaluationError),
}

/// The pod to which a request is assigned.
pub(crate) struct Assigned {
    pub(crate) name: PodName,
    pub(crate) pod: Uid,
    pub(crate) channel: Channel,
    pub(crate) waited: Waited,
    pub(crate) since: Instant,
}

/// A sender of messages to the driver.
#[derive(Clone)]
pub(crate) struct Inbox(mpsc::Sender<Message>);

// === impl Inbox ===

impl Inbox {
    pub(crate) fn new() -> (Self, mpsc::Receiver<Message>) {
        let (sender, receiver) = mpsc::channel(CAPACITY);
        (Self(sender), receiver)
    }

    /// Sends a caller's request, without waiting.
    ///
    /// # Errors
    /// `QUEUE_FULL` if the inbox is full, `DRAINING` if the driver has ended.
    pub(crate) fn request(&self, request: Message) -> Result<(), EvaluationError> {
        self.0.try_send(request).map_err(|error| match error {
            TrySendError::Full(_) => EvaluationError::new(
                Reason::QueueFull,
                format!("{CAPACITY} messages wait for the task that manages function pods"),
            )
            .retry_in(RETRY_DELAY),
            TrySendError::Closed(_) => driver_ended(),
        })
    }

    /// Sends the result of a task; waits for room. Returns whether the driver still runs.
    pub(crate) async fn send(&self, message: Message) -> bool {
        self.0.send(message).await.is_ok()
    }

    /// Sends a message that must not be lost, without waiting: a task waits if the inbox is full.
    pub(crate) fn send_without_waiting(&self, message: Message) {
        if let Err(TrySendError::Full(message)) = self.0.try_send(message)
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let inbox = self.clone();
            runtime.spawn(async move { inbox.send(message).await });
        }
    }

    /// Waits until the driver has ended.
    pub(crate) async fn closed(&self) {
        self.0.closed().await;
    }
}

/// Returns the error of a request that no driver will answer.
pub(crate) fn driver_ended() -> EvaluationError {
    EvaluationError::new(Reason::Draining, "the function runner is shutting down")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> (Inbox, mpsc::Receiver<Message>) {
        let (inbox, receiver) = Inbox::new();
        for number in 0..CAPACITY {
            let uid = Uid::from(number.to_string());
            assert!(inbox.request(Message::Knocked(uid)).is_ok());
        }
        (inbox, receiver)
    }

    fn uid(message: Option<Message>) -> String {
        match message {
            Some(Message::Knocked(uid)) => uid.to_string(),
            _ => panic!("another message was sent"),
        }
    }

    #[tokio::test]
    async fn refuses_a_request_while_the_inbox_is_full() {
        let (inbox, mut receiver) = full();
        let error = inbox.request(Message::Knocked("late".into())).unwrap_err();
        assert_eq!(error.reason(), Reason::QueueFull);
        receiver.recv().await;
        assert!(inbox.request(Message::Knocked("late".into())).is_ok());
    }

    #[tokio::test]
    async fn loses_no_message_of_a_task_while_the_inbox_is_full() {
        let (inbox, mut receiver) = full();
        // As when the future of a request is dropped.
        inbox.send_without_waiting(Message::Knocked("dropped".into()));
        let waiting = inbox.clone();
        let task = tokio::spawn(async move { waiting.send(Message::Knocked("task".into())).await });
        for number in 0..CAPACITY {
            assert_eq!(uid(receiver.recv().await), number.to_string());
        }
        let mut rest = [uid(receiver.recv().await), uid(receiver.recv().await)];
        rest.sort();
        assert_eq!(rest, ["dropped", "task"]);
        assert!(task.await.unwrap());
    }

    #[tokio::test]
    async fn reports_that_the_driver_has_ended() {
        let (inbox, receiver) = Inbox::new();
        drop(receiver);
        let error = inbox.request(Message::Knocked("late".into())).unwrap_err();
        assert_eq!(error.reason(), Reason::Draining);
        assert!(!inbox.send(Message::Knocked("late".into())).await);
    }
}
