//! The pod runtime as a link of the chain: follows one request from its image to its answer.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use runner_cluster::{InjectionPolicy, RenderOptions, TemplateSource};
use runner_config::Configuration;
use runner_core::{
    Evaluation, EvaluationError, EvaluationFuture, Function, Output, Reason, Runtime, TagConstraint,
};
use runner_pool::{Event, Limits, Outcome, RequestId, Settings};
use runner_registry::Registry;
use tokio::{
    sync::{Mutex, mpsc, oneshot, watch},
    task::JoinHandle,
    time::timeout_at,
};
use tracing::{Instrument, debug_span};

use crate::{
    Announcing, Connect, Readiness, Survey,
    connection::{self, CallError},
    driver,
    functions::{self, Functions},
    heartbeat::Heartbeat,
    inbox::{Assigned, Decision, Inbox, Message, driver_ended},
    warm::WarmUp,
    wording,
};

/// Functions that carry traces from span to span in HTTP headers.
#[derive(Clone, Copy, Debug)]
pub struct Tracing {
    /// Writes the trace of a span into the headers of a request made within it.
    pub inject: fn(&tracing::Span, &mut http::HeaderMap),
    /// Joins a new span to the trace in such headers.
    pub join: fn(&tracing::Span, &http::HeaderMap),
}

/// Options of the pod runtime.
pub struct PodOptions {
    /// Client of the Kubernetes API server.
    pub client: kube::Client,
    /// Namespace of function pods.
    pub namespace: String,
    /// DNS domain of the cluster, such as `cluster.local`.
    pub cluster_domain: String,
    /// Source of the templates that pods and services are made from.
    pub templates: TemplateSource,
    /// Rendering options that are the same for all pods.
    pub render: RenderOptions,
    /// Policy for the way in which the wrapper gets into pods.
    pub injection: InjectionPolicy,
    /// Address at which pods are called: their own or that of their service.
    pub connect: Connect,
    /// Limits of the pool.
    pub limits: Limits,
    /// Settings of functions for which nothing else is configured.
    pub defaults: Settings,
    /// Listener for announcements; none: only the watch shows that pods start.
    pub announcing: Option<Announcing>,
    /// Size limit of a message in bytes, in both directions.
    pub message_limit: usize,
    /// Time limit of evaluations whose caller sets no deadline.
    pub function_timeout: Duration,
    /// Time without a node after which a pod counts as failed.
    pub unschedulable_timeout: Duration,
    /// Interval of the search for services without a pod and pods without a service; at least 1 s.
    pub scan_interval: Duration,
    /// Whether to start the pods of the warm set.
    pub warm_up: bool,
    /// Functions that pass traces on to wrappers and join the starts of pods to them.
    pub tracing: Option<Tracing>,
}

/// The pod runtime. Clones share the pods.
#[derive(Clone)]
pub struct Pod {
    inner: Arc<Inner>,
    driver: Arc<Mutex<JoinHandle<String>>>,
}

struct Inner {
    configuration: Configuration,
    registry: Registry,
    functions: Functions,
    inbox: Inbox,
    next_request: AtomicU64,
    readiness: watch::Receiver<Readiness>,
    heartbeat: Arc<Heartbeat>,
    message_limit: usize,
    function_timeout: Duration,
    tracing: Option<Tracing>,
}

/// A request in the pool, which is cancelled when dropped before it has ended.
struct PendingRequest<'a> {
    request: RequestId,
    inbox: &'a Inbox,
    ended: bool,
}

// === impl Pod ===

impl Pod {
    /// Name of this runtime.
    pub const NAME: &'static str = "pod";

    /// Starts the tasks that watch the cluster and keep the pods.
    #[must_use]
    pub fn start(options: PodOptions, configuration: Configuration, registry: Registry) -> Self {
        let (inbox, messages) = Inbox::new();
        let (readiness, following) = watch::channel(Readiness::ClusterUnknown);
        let heartbeat = Arc::new(Heartbeat::new(Instant::now()));
        let functions = Functions::new(configuration.clone(), options.defaults);
        let inner = Inner {
            configuration: configuration.clone(),
            registry: registry.clone(),
            functions: functions.clone(),
            inbox: inbox.clone(),
            next_request: AtomicU64::new(1),
            readiness: following,
            heartbeat: heartbeat.clone(),
            message_limit: options.message_limit,
            function_timeout: options.function_timeout,
            tracing: options.tracing,
        };
        if options.warm_up {
            let warm = WarmUp {
                configuration,
                registry: registry.clone(),
                functions: functions.clone(),
                inbox: inbox.clone(),
            };
            tokio::spawn(warm.keep());
        }
        let driver = driver::spawn(
            options, registry, functions, inbox, messages, readiness, heartbeat,
        );
        Self {
            inner: Arc::new(inner),
            driver: Arc::new(Mutex::new(driver)),
        }
    }

    /// Waits until the task that manages the pods has ended, which only a defect causes. Returns the
    /// reason.
    pub async fn ended(&self) -> String {
        let mut driver = self.driver.lock().await;
        driver::reason((&mut *driver).await)
    }

    /// Returns the extent to which the state of the cluster is known, as a watch channel.
    #[must_use]
    pub fn readiness(&self) -> watch::Receiver<Readiness> {
        self.inner.readiness.clone()
    }

    /// Returns for how long the driver has not run, if it is stuck or has ended.
    #[must_use]
    pub fn stuck_for(&self) -> Option<Duration> {
        self.inner.heartbeat.stuck_for(Instant::now())
    }

    /// Accepts no more requests and finishes those it has; the pods stay for the next process.
    pub fn drain(&self, grace: Duration) {
        self.inner.inbox.send_without_waiting(Message::Drain(grace));
    }

    /// Returns the state of all pods, or none while shutting down.
    ///
    /// Waits until the state of the cluster is known.
    pub async fn survey(&self) -> Option<Survey> {
        let (reply, answer) = oneshot::channel();
        self.inner.inbox.send(Message::Survey(reply)).await;
        answer.await.ok()
    }

    async fn answer(
        &self,
        function: &Function,
        evaluation: &mut Evaluation,
    ) -> Result<Output, EvaluationError> {
        let inner = &*self.inner;
        let arrived = Instant::now();
        let deadline = evaluation
            .deadline
            .unwrap_or_else(|| arrived + inner.function_timeout);
        inner
            .configuration
            .complete_for(function, Some(deadline))
            .await?;
        let tag = function.tag.as_ref();
        let metadata = inner
            .registry
            .inspect(&function.image, tag, Some(deadline))
            .instrument(debug_span!("metadata"))
            .await
            .map_err(|error| {
                let image = function.image.to_string();
                wording::unresolved(error.into(), &image, tag.map(TagConstraint::as_str))
            })?;
        let looked_up = arrived.elapsed();
        let selected = functions::selected(function, &metadata);
        let wanted = inner.functions.of_image(&selected, &metadata, looked_up);
        let image = wanted.image().to_string();
        let annotated = |error: EvaluationError| {
            let image = image.as_str();
            error.with("image", image).with("evaluator", Self::NAME)
        };
        let (reply, mut decisions) = mpsc::unbounded_channel();
        let request = RequestId(inner.next_request.fetch_add(1, Ordering::Relaxed));
        let message = Message::Request {
            id: request,
            function: wanted,
            deadline,
            span: tracing::Span::current(),
            reply,
        };
        inner.inbox.request(message).map_err(&annotated)?;
        let mut pending = PendingRequest {
            request,
            inbox: &inner.inbox,
            ended: false,
        };
        let named = selected.to_string();
        let answer = self.follow(&mut pending, &mut decisions, &named, evaluation, deadline);
        answer.await.map_err(annotated)
    }

    /// Calls the pods that the pool assigns until the request is answered or has failed.
    async fn follow(
        &self,
        pending: &mut PendingRequest<'_>,
        decisions: &mut mpsc::UnboundedReceiver<Decision>,
        image: &str,
        evaluation: &Evaluation,
        deadline: Instant,
    ) -> Result<Output, EvaluationError> {
        let waited_since = Instant::now();
        let failed = |error| wording::failed(error, image);
        let next = self.next(decisions, deadline, waited_since).await;
        let mut decision = next.map_err(failed)?;
        loop {
            let assigned = match decision {
                Decision::Rejected(error) => {
                    pending.ended = true;
                    return Err(failed(error));
                }
                Decision::Assigned(assigned) => assigned,
            };
            let call = self
                .call(&assigned, image, evaluation, deadline)
                .instrument(debug_span!("call", pod = %assigned.name));
            let outcome = tokio::select! {
                biased;
                outcome = timeout_at(deadline.into(), call) => outcome,
                // The pool gave the pod up before the connection failed.
                Some(next) = decisions.recv() => {
                    decision = next;
                    continue;
                }
            };
            match outcome {
                Ok(Ok(output)) => {
                    pending.done(&assigned, Outcome::Answered);
                    return Ok(output);
                }
                Ok(Err(CallError::Reported(error))) => {
                    pending.done(&assigned, Outcome::Answered);
                    return Err(wording::reported(error, image));
                }
                Ok(Err(CallError::Lost(detail))) => {
                    pending.lost(&assigned, detail);
                    let next = self.next(decisions, deadline, waited_since).await;
                    decision = next.map_err(failed)?;
                }
                Err(_) => return Err(failed(too_late(&assigned))),
            }
        }
    }

    /// Waits for the next decision of the pool.
    ///
    /// Once the state of the cluster is known, the pool decides before the deadline by itself; the
    /// wait is then 50 ms longer, to receive that decision.
    async fn next(
        &self,
        decisions: &mut mpsc::UnboundedReceiver<Decision>,
        deadline: Instant,
        since: Instant,
    ) -> Result<Decision, EvaluationError> {
        let wait_until = if *self.inner.readiness.borrow() == Readiness::Ready {
            deadline + Duration::from_millis(50)
        } else {
            deadline
        };
        let decision = decisions.recv().instrument(debug_span!("wait"));
        match timeout_at(wait_until.into(), decision).await {
            Ok(Some(decision)) => Ok(decision),
            Ok(None) => Err(driver_ended()),
            Err(_) if *self.inner.readiness.borrow() != Readiness::Ready => {
                Err(EvaluationError::new(
                    Reason::KubernetesUnreachable,
                    format!(
                        "the pods of the cluster are not known yet: waited {:.1?} for the Kubernetes API server",
                        since.elapsed()
                    ),
                ))
            }
            Err(_) => Err(EvaluationError::new(
                Reason::DeadlineExceeded,
                format!(
                    "no pod took the request before the caller's deadline, {:.1?} after it came",
                    since.elapsed()
                ),
            )),
        }
    }

    async fn call(
        &self,
        assigned: &Assigned,
        image: &str,
        evaluation: &Evaluation,
        deadline: Instant,
    ) -> Result<Output, CallError> {
        let mut headers = http::HeaderMap::new();
        if let Some(tracing) = self.inner.tracing {
            (tracing.inject)(&tracing::Span::current(), &mut headers);
        }
        let list = evaluation.resource_list.clone();
        let image = image.to_owned();
        let limit = self.inner.message_limit;
        connection::evaluate(
            assigned.channel.clone(),
            image,
            list,
            headers,
            deadline,
            limit,
        )
        .await
    }
}

impl Runtime for Pod {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn evaluate<'a>(
        &'a self,
        function: &'a Function,
        evaluation: &'a mut Evaluation,
    ) -> EvaluationFuture<'a> {
        Box::pin(self.answer(function, evaluation))
    }
}

// === impl PendingRequest ===

impl PendingRequest<'_> {
    fn done(&mut self, assigned: &Assigned, outcome: Outcome) {
        self.ended = true;
        self.report(assigned, outcome);
    }

    fn lost(&mut self, assigned: &Assigned, detail: String) {
        tracing::info!(pod = %assigned.name, detail, "a call to a pod was lost");
        self.report(assigned, Outcome::PodLost { detail });
    }

    fn report(&self, assigned: &Assigned, outcome: Outcome) {
        let event = Event::Done {
            request: self.request,
            pod: assigned.pod.clone(),
            outcome,
        };
        self.inbox.send_without_waiting(Message::Event(event));
    }
}

impl Drop for PendingRequest<'_> {
    fn drop(&mut self) {
        if !self.ended {
            let cancel = Event::Cancel(self.request);
            self.inbox.send_without_waiting(Message::Event(cancel));
        }
    }
}

fn too_late(assigned: &Assigned) -> EvaluationError {
    let waited = assigned.waited;
    let running = assigned.since.elapsed();
    EvaluationError::new(
        Reason::DeadlineExceeded,
        format!(
            "the function did not finish before the caller's deadline: queued {:.1?}, starting pod {:.1?}, running {running:.1?}",
            waited.queued, waited.starting
        ),
    )
    .with("queued_ms", waited.queued.as_millis().to_string())
    .with("starting_ms", waited.starting.as_millis().to_string())
    .with("running_ms", running.as_millis().to_string())
}
