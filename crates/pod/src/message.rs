//! Messages to the driver, and its decisions about requests.

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

use crate::{connection::Line, survey::Survey};

/// A message to the driver.
pub(crate) enum Message {
    /// A caller requests an evaluation.
    Request {
        id: RequestId,
        function: Arc<Function>,
        deadline: Instant,
        /// Span of the request; the start of a pod for it joins its trace.
        span: tracing::Span,
        reply: mpsc::UnboundedSender<Verdict>,
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
        /// Line on which the pod answered, if it did.
        answered: Option<Line>,
    },
    /// A pod answered on another line than before.
    Moved {
        uid: Uid,
        line: Line,
    },
    /// Images that cannot be kept warm, with the reason.
    Cold(BTreeMap<String, String>),
    /// The time limit of a pod to get a node, or an address, has passed.
    CheckStart(Uid),
    /// A pod or a service of this slot appeared or disappeared a while ago.
    CheckService(String),
    Drain(Duration),
    Survey(oneshot::Sender<Survey>),
}

/// The pool's decision about a request.
pub(crate) enum Verdict {
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
