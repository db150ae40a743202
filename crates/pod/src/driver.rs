//! The driver: the task that passes inputs to the coordinator and carries out its effects.
//!
//! Everything that happens becomes an input. Effects that take time run in tasks of their own,
//! which report their result as a message; the driver waits for none of them.

mod effects;
mod spans;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use runner_cluster::{
    Cluster, CreateOutcome, Injector, PodObservation, RenderOptions, TemplateError, Templates,
};
use runner_core::with_causes;
use runner_pool::{Anchor, Event, Outcome, PodName, PodPhase, Request, RequestId, Time, Uid};
use runner_registry::Registry;
use tokio::{
    sync::{mpsc, watch},
    task::{JoinError, JoinHandle, JoinSet},
};

use crate::{
    PodOptions, Tracing, announce,
    connection::Connection,
    coordinator::{
        AnnouncementOutcome, Coordinator, CoordinatorOptions, CreateResult, Effect, Input,
        Observation, Readiness,
    },
    create::Creator,
    functions::Functions,
    heartbeat::Heartbeat,
    inbox::{Decision, Inbox, Message},
    metrics::Metrics,
    target::Connect,
};
use effects::PodTasks;
use spans::StartSpans;

/// Interval at which the metrics of pods and queues are updated (5 s).
const METRICS_INTERVAL: Duration = Duration::from_secs(5);

pub(crate) struct Driver {
    coordinator: Coordinator,
    anchor: Anchor,
    creator: Creator,
    connect: Connect,
    /// Address (host:port) that wrappers announce themselves to.
    announce_address: Option<String>,
    probe_timeout: Duration,
    /// The last templates that passed validation; new pods are made from these.
    templates: Option<Arc<Templates>>,
    requests: HashMap<RequestId, mpsc::UnboundedSender<Decision>>,
    pods: HashMap<Uid, PodTasks>,
    /// Spans of the starts of pods.
    spans: HashMap<PodName, StartSpans>,
    /// Images that cannot be kept warm, with the reason.
    cold: BTreeMap<String, String>,
    tracing: Option<Tracing>,
    inbox: Inbox,
    metrics: Metrics,
    readiness: watch::Sender<Readiness>,
    heartbeat: Arc<Heartbeat>,
    /// Buffer for the effects of one input; empty between inputs.
    effects: Vec<Effect>,
}

/// Data of a message that its effects need, but the coordinator does not.
#[derive(Default)]
struct Context {
    /// Span of the request being handled; the start of a pod for it joins its trace.
    request_span: Option<tracing::Span>,
    /// Connection over which a pod has just answered.
    connection: Option<Connection>,
}

/// Starts the driver, the watches and the announcement server.
pub(crate) fn spawn(
    options: PodOptions,
    registry: Registry,
    functions: Functions,
    inbox: Inbox,
    messages: mpsc::Receiver<Message>,
    readiness: watch::Sender<Readiness>,
    heartbeat: Arc<Heartbeat>,
) -> JoinHandle<String> {
    let (sender, observations) = mpsc::unbounded_channel();
    let watches = runner_cluster::watch(
        &options.client,
        &options.namespace,
        options.templates,
        sender,
    );
    let announce_address = options.announcing.map(|announcing| {
        tokio::spawn(announce::serve(announcing.listener, inbox.clone()));
        announcing.address
    });
    let cluster = Cluster::new(options.client, &options.namespace);
    let render = Arc::<RenderOptions>::new(options.render);
    let creator = Creator {
        injector: Arc::new(Injector::new(
            options.injection,
            cluster.clone(),
            Arc::clone(&render),
        )),
        cluster,
        registry,
        functions,
        render,
        services: options.connect != Connect::Pod,
        inbox: inbox.clone(),
    };
    let driver = Driver {
        probe_timeout: options.limits.probe_timeout,
        coordinator: Coordinator::new(CoordinatorOptions {
            limits: options.limits,
            connect: options.connect,
            service_domain: format!("{}.svc.{}", options.namespace, options.cluster_domain),
            unschedulable_timeout: options.unschedulable_timeout,
            scan_interval: options.scan_interval.max(Duration::from_secs(1)),
            new_secret: Box::new(announce::new_secret),
        }),
        anchor: Anchor::new(Instant::now(), SystemTime::now()),
        creator,
        connect: options.connect,
        announce_address,
        templates: None,
        requests: HashMap::new(),
        pods: HashMap::new(),
        spans: HashMap::new(),
        cold: BTreeMap::new(),
        tracing: options.tracing,
        inbox,
        metrics: Metrics::new(),
        readiness,
        heartbeat,
        effects: Vec::new(),
    };
    tokio::spawn(driver.run(messages, observations, watches))
}

/// Returns why the driver has ended, which only a defect causes.
pub(crate) fn reason(ended: Result<String, JoinError>) -> String {
    let why = ended.unwrap_or_else(|error| error.to_string());
    format!("the task that manages function pods has ended: {why}")
}

// === impl Driver ===

impl Driver {
    async fn run(
        mut self,
        mut messages: mpsc::Receiver<Message>,
        mut observations: mpsc::UnboundedReceiver<runner_cluster::Observation>,
        mut watches: JoinSet<()>,
    ) -> String {
        let mut update_metrics = tokio::time::interval(METRICS_INTERVAL);
        loop {
            let now = Instant::now();
            self.heartbeat.beat(now);
            let wakeup = self.coordinator.next_wakeup();
            let wakeup = wakeup.and_then(|time| self.anchor.instant(time));
            let wakeup = wakeup.unwrap_or_else(|| now + Duration::from_secs(3600));
            // Requests wait until the cluster is known: a pod for them may already exist.
            let is_known = self.coordinator.readiness() == Readiness::Ready;
            tokio::select! {
                biased;
                Some(observation) = observations.recv() => self.observe(observation),
                message = messages.recv(), if is_known => match message {
                    Some(message) => self.receive(message),
                    None => return "no caller is left".to_owned(),
                },
                () = tokio::time::sleep_until(wakeup.into()), if is_known => {
                    self.input(Input::Tick);
                }
                _ = update_metrics.tick() => {
                    self.metrics.show(&self.coordinator.snapshot(self.anchor.time(now)));
                    self.metrics.show_injection(self.creator.injector.status());
                }
                Some(ended) = watches.join_next() => return match ended {
                    Ok(()) => "a watch of the cluster has ended".to_owned(),
                    Err(error) => format!("a watch of the cluster has ended: {error}"),
                },
            }
        }
    }

    fn now(&self) -> Time {
        self.anchor.time(Instant::now())
    }

    fn input(&mut self, input: Input) {
        self.input_with(input, Context::default());
    }

    /// Passes an input to the coordinator and carries out the effects that it returns.
    fn input_with(&mut self, input: Input, context: Context) {
        let mut effects = std::mem::take(&mut self.effects);
        self.coordinator.handle(self.now(), input, &mut effects);
        self.carry_out_all(effects, context);
    }

    fn carry_out_all(&mut self, mut effects: Vec<Effect>, mut context: Context) {
        for effect in effects.drain(..) {
            self.carry_out(effect, &mut context);
        }
        self.effects = effects;
    }

    fn receive(&mut self, message: Message) {
        match message {
            Message::Request {
                id,
                function,
                deadline,
                span,
                reply,
            } => {
                self.requests.insert(id, reply);
                let request = Event::Request(Request {
                    id,
                    function,
                    deadline: Some(self.anchor.time(deadline)),
                });
                let context = Context {
                    request_span: Some(span),
                    ..Context::default()
                };
                self.input_with(Input::Event(request), context);
            }
            Message::Event(event) => {
                self.record(&event);
                self.input(Input::Event(event));
            }
            Message::Created {
                create,
                outcome,
                looked_up,
            } => {
                let result = match outcome {
                    CreateOutcome::Created {
                        uid,
                        resource_version,
                    } => CreateResult::Created {
                        uid,
                        resource_version,
                    },
                    CreateOutcome::NameTaken(observation) => {
                        CreateResult::NameTaken(Box::new(self.judged(*observation)))
                    }
                    CreateOutcome::Failed(error) => {
                        self.metrics.start_failed();
                        CreateResult::Failed(error.into_start_failure())
                    }
                };
                self.input(Input::Created {
                    create,
                    result,
                    looked_up,
                });
            }
            Message::Announced {
                pod,
                token,
                address,
                reply,
            } => {
                let (now, mut effects) = (self.now(), std::mem::take(&mut self.effects));
                let coordinator = &mut self.coordinator;
                let outcome = coordinator.announced(now, &pod, &token, address, &mut effects);
                self.carry_out_all(effects, Context::default());
                tracing::debug!(%pod, %address, ?outcome, "an announcement");
                self.metrics.announcement(outcome);
                let _ = reply.send(outcome == AnnouncementOutcome::Accepted);
            }
            Message::Knocked(uid) => self.input(Input::Knocked(uid)),
            Message::Probed {
                name,
                uid,
                answered: connection,
            } => {
                let answered = connection.as_ref().map(|it| it.target.clone());
                let input = Input::Probed {
                    name,
                    uid,
                    answered,
                };
                self.input_over(input, connection);
            }
            Message::TargetAnswers { uid, connection } => {
                let target = connection.target.clone();
                self.input_over(Input::TargetAnswers { uid, target }, Some(connection));
            }
            Message::Cold(images) => self.cold = images,
            Message::Drain(grace) => {
                let until = self.now() + grace;
                self.input(Input::Event(Event::Drain { until }));
            }
            Message::Survey(reply) => {
                let mut survey = self.coordinator.survey(self.now());
                survey.cold.clone_from(&self.cold);
                survey.injection = self.creator.injector.status();
                let _ = reply.send(survey);
            }
        }
    }

    /// Passes an input about a connection over which a pod has just answered.
    fn input_over(&mut self, input: Input, connection: Option<Connection>) {
        let context = Context {
            connection,
            ..Context::default()
        };
        self.input_with(input, context);
    }

    /// Updates the driver's own state for an event from outside.
    fn record(&mut self, event: &Event) {
        match event {
            Event::Cancel(request)
            | Event::Done {
                request,
                outcome: Outcome::Answered,
                ..
            } => {
                self.requests.remove(request);
            }
            Event::Done {
                outcome: Outcome::PodLost { .. },
                ..
            } => self.metrics.lost(),
            Event::StartFailed { .. } => self.metrics.start_failed(),
            _ => {}
        }
    }

    fn observe(&mut self, observation: runner_cluster::Observation) {
        use runner_cluster::Observation as Watched;
        let observation = match observation {
            Watched::Pod(observation) => Observation::Pod(Box::new(self.judged(*observation))),
            Watched::PodGone { name, uid } => Observation::PodGone { name, uid },
            Watched::Pods(present) => Observation::Pods(present),
            Watched::Service(service) => Observation::Service(service),
            Watched::ServiceGone(name) => Observation::ServiceGone(name),
            Watched::Services(present) => Observation::Services(present),
            Watched::Templates(Ok(templates))
                if self.connect == Connect::Service && templates.service_is_headless() =>
            {
                let error = TemplateError::headless();
                tracing::error!("{error}");
                Observation::Template(Err(error.to_string()))
            }
            Watched::Templates(Ok(templates)) => {
                let template = templates.for_pool(&self.creator.render);
                // Set first: the pool's next pods are to be made from these templates.
                self.templates = Some(templates.clone());
                // Choose now, so that the first pod need not wait for the answer of the API server.
                let injector = self.creator.injector.clone();
                tokio::spawn(async move { injector.choose(&templates).await });
                Observation::Template(Ok(template))
            }
            Watched::Templates(Err(error)) => Observation::Template(Err(with_causes(&error))),
        };
        self.input(Input::Observation(observation));
    }

    /// Marks the failure of a pod as avoidable if the next pod is made with another injection.
    fn judged(&self, mut observation: PodObservation) -> PodObservation {
        let injection = observation.injection;
        observation.observed.phase = match observation.observed.phase {
            PodPhase::Failed(failure)
                if self.creator.injector.record_failure(injection, &failure) =>
            {
                PodPhase::FailedAvoidably(failure)
            }
            phase => phase,
        };
        observation
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn names_the_panic_that_ended_the_driver() {
        let task = tokio::spawn(async { panic!("attempt to divide by zero") });
        let reason = reason(task.await);
        assert!(reason.contains("attempt to divide by zero"), "{reason}");
    }
}
