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
    Announcing, Connect, Survey,
    connection::{self, Failed},
    driver,
    functions::{self, Functions},
    heartbeat::Heartbeat,
    message::{Assigned, Message, Verdict},
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

/// Extent to which the state of the cluster is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InStep {
    /// Pods and services have not been listed yet.
    No,
    /// Pods and services have been listed; the templates have not been read yet.
    ButTemplates,
    /// Everything that evaluations need is known.
    Yes,
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
    messages: mpsc::UnboundedSender<Message>,
    next_request: AtomicU64,
    in_step: watch::Receiver<InStep>,
    heartbeat: Arc<Heartbeat>,
    message_limit: usize,
    function_timeout: Duration,
    tracing: Option<Tracing>,
}

/// A request in the pool, which is cancelled when dropped before it has ended.
struct Held<'a> {
    request: RequestId,
    messages: &'a mpsc::UnboundedSender<Message>,
    ended: bool,
}

// === impl Pod ===

impl Pod {
    /// Name of this runtime.
    pub const NAME: &'static str = "pod";

    /// Starts the tasks that watch the cluster and keep the pods.
    #[must_use]
    pub fn start(options: PodOptions, configuration: Configuration, registry: Registry) -> Self {
        let (messages, inbox) = mpsc::unbounded_channel();
        let (in_step, following) = watch::channel(InStep::No);
        let heartbeat = Arc::new(Heartbeat::new(Instant::now()));
        let functions = Functions::new(configuration.clone(), options.defaults);
        let inner = Inner {
            configuration: configuration.clone(),
            registry: registry.clone(),
            functions: functions.clone(),
            messages: messages.clone(),
            next_request: AtomicU64::new(1),
            in_step: following,
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
                messages: messages.clone(),
            };
            tokio::spawn(warm.keep());
        }
        let driver = driver::spawn(
            options, registry, functions, messages, inbox, in_step, heartbeat,
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
    pub fn in_step(&self) -> watch::Receiver<InStep> {
        self.inner.in_step.clone()
    }

    /// Returns for how long the driver has not run, if it is stuck or has ended.
    #[must_use]
    pub fn stuck_for(&self) -> Option<Duration> {
        self.inner.heartbeat.stuck_for(Instant::now())
    }

    /// Accepts no more requests and finishes those it has; the pods stay for the next process.
    pub fn drain(&self, grace: Duration) {
        let _ = self.inner.messages.send(Message::Drain(grace));
    }

    /// Returns the state of all pods, or none while shutting down.
    ///
    /// Waits until the state of the cluster is known.
    pub async fn survey(&self) -> Option<Survey> {
        let (reply, answer) = oneshot::channel();
        self.inner.messages.send(Message::Survey(reply)).ok()?;
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
                let asked = function.image.to_string();
                wording::unresolved(error.into(), &asked, tag.map(TagConstraint::as_str))
            })?;
        let looked_up = arrived.elapsed();
        let selected = functions::selected(function, &metadata);
        let wanted = inner.functions.of_image(&selected, &metadata, looked_up);
        let image = wanted.image().to_string();
        let (reply, mut verdicts) = mpsc::unbounded_channel();
        let request = RequestId(inner.next_request.fetch_add(1, Ordering::Relaxed));
        let mut held = Held {
            request,
            messages: &inner.messages,
            ended: false,
        };
        let asked = Message::Request {
            id: request,
            function: wanted,
            deadline,
            span: tracing::Span::current(),
            reply,
        };
        inner.messages.send(asked).map_err(|_| stopped())?;
        let named = selected.to_string();
        let answer = self.follow(&mut held, &mut verdicts, &named, evaluation, deadline);
        answer
            .await
            .map_err(|error| error.with("image", image).with("evaluator", Self::NAME))
    }

    /// Calls the pods that the pool assigns until the request is answered or has failed.
    async fn follow(
        &self,
        held: &mut Held<'_>,
        verdicts: &mut mpsc::UnboundedReceiver<Verdict>,
        image: &str,
        evaluation: &Evaluation,
        deadline: Instant,
    ) -> Result<Output, EvaluationError> {
        let waited_since = Instant::now();
        let failed = |error| wording::failed(error, image);
        let next = self.next(verdicts, deadline, waited_since).await;
        let mut verdict = next.map_err(failed)?;
        loop {
            let assigned = match verdict {
                Verdict::Rejected(error) => {
                    held.ended = true;
                    return Err(failed(error));
                }
                Verdict::Assigned(assigned) => assigned,
            };
            let call = self
                .call(&assigned, image, evaluation, deadline)
                .instrument(debug_span!("call", pod = %assigned.name));
            let outcome = tokio::select! {
                biased;
                outcome = timeout_at(deadline.into(), call) => outcome,
                // The pool gave the pod up before the connection failed.
                Some(next) = verdicts.recv() => {
                    verdict = next;
                    continue;
                }
            };
            match outcome {
                Ok(Ok(output)) => {
                    held.done(&assigned, Outcome::Answered);
                    return Ok(output);
                }
                Ok(Err(Failed::Said(error))) => {
                    held.done(&assigned, Outcome::Answered);
                    return Err(wording::said(error, image));
                }
                Ok(Err(Failed::Lost(detail))) => {
                    held.lost(&assigned, detail);
                    let next = self.next(verdicts, deadline, waited_since).await;
                    verdict = next.map_err(failed)?;
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
        verdicts: &mut mpsc::UnboundedReceiver<Verdict>,
        deadline: Instant,
        since: Instant,
    ) -> Result<Verdict, EvaluationError> {
        let patience = if *self.inner.in_step.borrow() == InStep::Yes {
            deadline + Duration::from_millis(50)
        } else {
            deadline
        };
        let word = verdicts.recv().instrument(debug_span!("wait"));
        match timeout_at(patience.into(), word).await {
            Ok(Some(verdict)) => Ok(verdict),
            Ok(None) => Err(stopped()),
            Err(_) if *self.inner.in_step.borrow() != InStep::Yes => Err(EvaluationError::new(
                Reason::KubernetesUnreachable,
                format!(
                    "the pods of the cluster are not known yet: waited {:.1?} for the Kubernetes API server",
                    since.elapsed()
                ),
            )),
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
    ) -> Result<Output, Failed> {
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

// === impl Held ===

impl Held<'_> {
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
        let _ = self.messages.send(Message::Event(event));
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if !self.ended {
            let _ = self
                .messages
                .send(Message::Event(Event::Cancel(self.request)));
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

fn stopped() -> EvaluationError {
    EvaluationError::new(Reason::Draining, "the function runner is shutting down")
}
