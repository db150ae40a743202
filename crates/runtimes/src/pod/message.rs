//! What the driver is told, and what it tells those who wait.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use runner_cluster::CreateOutcome;
use runner_core::EvaluationError;
use runner_pool::{Create, Event, Function, PodName, RequestId, Uid, Waited};
use tokio::sync::{mpsc, oneshot};
use tonic::transport::Channel;

use super::{connection::Line, survey::Survey};

/// Something for the driver to take in.
pub(super) enum Message {
    /// A caller wants a function evaluated.
    Request {
        id: RequestId,
        function: Arc<Function>,
        deadline: Instant,
        /// Within which the request is made: the start of a pod for it joins its trace.
        span: tracing::Span,
        reply: mpsc::UnboundedSender<Verdict>,
    },
    /// Something the pool must know, as it is.
    Event(Event),
    /// An attempt to create a pod came to an end.
    Created {
        create: Create,
        outcome: CreateOutcome,
        /// How long the image was looked up for it.
        looked_up: Duration,
    },
    /// A pod announced itself.
    Announced {
        slot: String,
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
        /// The line on which it answered.
        answered: Option<Line>,
    },
    /// A pod answered on another line than before.
    Moved {
        uid: Uid,
        line: Line,
    },
    /// Images that cannot be kept warm, and why.
    Cold(BTreeMap<String, String>),
    /// A pod had no node, or no address, a while ago.
    CheckStart(Uid),
    /// A pod or a service of this slot came or went a while ago.
    CheckService(String),
    Drain(Duration),
    Survey(oneshot::Sender<Survey>),
}

/// What becomes of a request.
pub(super) enum Verdict {
    Assigned(Assigned),
    Rejected(EvaluationError),
}

/// A pod to go to.
pub(super) struct Assigned {
    pub(super) name: PodName,
    pub(super) pod: Uid,
    pub(super) channel: Channel,
    pub(super) waited: Waited,
    pub(super) since: Instant,
}
