//! The driver: the task that owns the pool.
//!
//! Everything that happens becomes an event for the pool. Every action of the pool is started, and
//! the driver waits for none of them.

mod actions;
mod services;
mod sightings;
mod survey;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use runner_cluster::{
    Cluster, CreateOutcome, Injector, Observation, RenderOptions, ServiceObservation,
    TemplateError, Templates,
};
use runner_pool::{
    Action, Anchor, Create, Event, Outcome, PodName, Pool, Request, RequestId, Time, Uid,
};
use runner_registry::Registry;
use tokio::{
    sync::{mpsc, watch},
    task::{JoinError, JoinHandle, JoinSet},
};

use crate::{
    InStep, PodOptions, Tracing, announce,
    announce::{Heard, Token},
    connection::Connect,
    create::Creator,
    functions::Functions,
    heartbeat::Heartbeat,
    link::Link,
    message::{Message, Verdict},
    metrics::Metrics,
    start::{Phase, Start},
};

/// Interval at which the metrics of pods and queues are updated (5 s).
const SHOW_EVERY: Duration = Duration::from_secs(5);

/// Largest number of events that actions may return at once while one event is handled.
///
/// It is far above the number of pods and requests. Exceeding it is a defect, which must not stop
/// the runner.
const MOST_ANSWERS: usize = 1_000_000;

pub(crate) struct Driver {
    pool: Pool,
    anchor: Anchor,
    creator: Creator,
    connect: Connect,
    /// Domain of the services of function pods, such as `porch-fn-system.svc.cluster.local`.
    service_domain: String,
    /// Address (host:port) that wrappers announce themselves to.
    announce_address: Option<String>,
    unschedulable_timeout: Duration,
    /// Time after which the injection of a pod that has a node but no address is given up.
    ///
    /// It is shorter than the time for a pod to become ready, so that waiting requests get another
    /// pod.
    address_timeout: Duration,
    probe_timeout: Duration,
    /// The last templates that passed validation; new pods are made from these.
    templates: Option<Arc<Templates>>,
    /// The validation error of the newest templates, if they were rejected.
    template_error: Option<TemplateError>,
    requests: HashMap<RequestId, mpsc::UnboundedSender<Verdict>>,
    links: HashMap<Uid, Link>,
    services: HashMap<String, ServiceObservation>,
    /// Services without a pod, with the time at which that was first seen.
    orphans: HashMap<String, Instant>,
    tokens: HashMap<PodName, Token>,
    /// Starts of pods for which the API server has not answered the create request yet.
    asked: HashMap<PodName, Start>,
    /// Number of announcements refused because their token was unknown or already used.
    refused: u64,
    /// Images that cannot be kept warm, with the reason.
    cold: BTreeMap<String, String>,
    tracing: Option<Tracing>,
    /// Tracing span of the request being passed to the pool.
    asked_by: Option<tracing::Span>,
    messages: mpsc::UnboundedSender<Message>,
    metrics: Metrics,
    in_step: watch::Sender<InStep>,
    heartbeat: Arc<Heartbeat>,
    /// Whether pods (first) and services (second) have been listed.
    listed: (bool, bool),
}

/// Starts the driver, the watches and the announcement server.
pub(crate) fn spawn(
    options: PodOptions,
    registry: Registry,
    functions: Functions,
    messages: mpsc::UnboundedSender<Message>,
    inbox: mpsc::UnboundedReceiver<Message>,
    in_step: watch::Sender<InStep>,
    heartbeat: Arc<Heartbeat>,
) -> JoinHandle<String> {
    let (sender, seen) = mpsc::unbounded_channel();
    let watches = runner_cluster::watch(
        &options.client,
        &options.namespace,
        options.templates,
        sender,
    );
    let announce_address = options.announcing.map(|announcing| {
        tokio::spawn(announce::serve(announcing.listener, messages.clone()));
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
        messages: messages.clone(),
    };
    let driver = Driver {
        address_timeout: options.limits.ready_timeout.mul_f32(0.75),
        probe_timeout: options.limits.probe_timeout,
        pool: Pool::new(options.limits, ""),
        anchor: Anchor::new(Instant::now(), SystemTime::now()),
        creator,
        connect: options.connect,
        service_domain: format!("{}.svc.{}", options.namespace, options.cluster_domain),
        announce_address,
        unschedulable_timeout: options.unschedulable_timeout,
        templates: None,
        template_error: None,
        requests: HashMap::new(),
        links: HashMap::new(),
        services: HashMap::new(),
        orphans: HashMap::new(),
        tokens: HashMap::new(),
        asked: HashMap::new(),
        refused: 0,
        cold: BTreeMap::new(),
        tracing: options.tracing,
        asked_by: None,
        messages,
        metrics: Metrics::new(),
        in_step,
        heartbeat,
        listed: (false, options.connect == Connect::Pod),
    };
    let scan_every = options.scan_interval.max(Duration::from_secs(1));
    tokio::spawn(driver.run(inbox, seen, watches, scan_every))
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
        mut inbox: mpsc::UnboundedReceiver<Message>,
        mut seen: mpsc::UnboundedReceiver<Observation>,
        mut watches: JoinSet<()>,
        scan_every: Duration,
    ) -> String {
        let mut scan = tokio::time::interval(scan_every);
        let mut show = tokio::time::interval(SHOW_EVERY);
        loop {
            let now = Instant::now();
            self.heartbeat.beat(now);
            let wakeup = match self
                .pool
                .next_wakeup()
                .map(|time| self.anchor.instant(time))
            {
                Some(Some(instant)) => instant,
                _ => now + Duration::from_secs(3600),
            };
            // Requests wait until the cluster is known: a pod for them may already exist.
            let known = *self.in_step.borrow() == InStep::Yes;
            tokio::select! {
                biased;
                Some(seen) = seen.recv() => self.see(seen),
                message = inbox.recv(), if known => match message {
                    Some(message) => self.hear(message),
                    None => return "no caller is left".to_owned(),
                },
                () = tokio::time::sleep_until(wakeup.into()), if known => self.tell(Event::Tick),
                _ = scan.tick(), if known => self.check_services(scan_every),
                _ = show.tick() => {
                    self.metrics.show(&self.pool.snapshot(self.anchor.time(now)));
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

    /// Passes an event to the pool and carries out the actions that it returns.
    fn tell(&mut self, event: Event) {
        let mut actions = Vec::new();
        self.pool.handle(self.now(), event, &mut actions);
        // An action may return an event at once; the pool handles it before the next action starts.
        let mut actions = std::collections::VecDeque::from(actions);
        let mut answers = 0;
        while let Some(action) = actions.pop_front() {
            if let Some(event) = self.act(action) {
                answers += 1;
                if answers > MOST_ANSWERS {
                    // The next tick continues from here.
                    tracing::error!(?event, "actions without an end: this is a defect");
                    debug_assert!(false, "actions without an end");
                    break;
                }
                let mut more = Vec::new();
                self.pool.handle(self.now(), event, &mut more);
                actions.extend(more);
            }
        }
    }

    fn hear(&mut self, message: Message) {
        match message {
            Message::Request {
                id,
                function,
                deadline,
                span,
                reply,
            } => {
                self.requests.insert(id, reply);
                let deadline = self.anchor.time(deadline);
                self.asked_by = Some(span);
                self.tell(Event::Request(Request {
                    id,
                    function,
                    deadline: Some(deadline),
                }));
                self.asked_by = None;
            }
            Message::Event(event) => {
                self.note(&event);
                self.tell(event);
            }
            Message::Created {
                create,
                outcome,
                looked_up,
            } => self.created(create, outcome, looked_up),
            Message::Announced {
                slot,
                token,
                address,
                reply,
            } => {
                let slot = PodName::from(slot);
                let heard = self.announced(&slot, &token, address);
                tracing::debug!(%slot, %address, ?heard, "an announcement");
                self.metrics.announcement(heard);
                self.refused += u64::from(heard == Heard::Refused);
                let _ = reply.send(heard == Heard::Accepted);
            }
            Message::Knocked(uid) => self.knocked(&uid),
            Message::Probed {
                name,
                uid,
                answered: None,
            } => self.tell(Event::ProbeFailed { name, uid }),
            Message::Probed {
                name,
                uid,
                answered: Some(line),
            } => {
                self.moved(&uid, line);
                self.tell(Event::Ready {
                    name,
                    uid,
                    attempt: None,
                });
            }
            Message::Moved { uid, line } => self.moved(&uid, line),
            Message::Cold(images) => self.cold = images,
            Message::CheckService(name) => self.check_service(&name),
            Message::CheckStart(uid) => self.check_start(&uid),
            Message::Drain(grace) => {
                let until = self.now() + grace;
                self.tell(Event::Drain { until });
            }
            Message::Survey(reply) => {
                let _ = reply.send(self.survey());
            }
        }
    }

    /// Updates the driver's own state for an event from outside.
    fn note(&mut self, event: &Event) {
        match event {
            Event::Cancel(request) => {
                self.requests.remove(request);
            }
            Event::Done {
                request,
                pod,
                outcome,
            } => match outcome {
                Outcome::Answered => {
                    self.requests.remove(request);
                    self.reach(pod, Phase::Answered);
                }
                Outcome::PodLost { .. } => self.metrics.lost(),
            },
            Event::StartFailed { name, .. } => {
                self.forget_attempt(name);
                self.metrics.start_failed();
            }
            _ => {}
        }
    }

    fn created(&mut self, create: Create, outcome: CreateOutcome, looked_up: Duration) {
        let Create {
            name,
            slot,
            attempt,
            ..
        } = create;
        match outcome {
            CreateOutcome::Created {
                uid,
                resource_version,
            } => {
                let mut start = self.asked.remove(&name);
                if let Some(start) = &mut start {
                    start.looked_up(looked_up);
                    self.metrics.phase(Phase::Metadata, looked_up);
                }
                let link = self
                    .links
                    .entry(uid.clone())
                    .or_insert_with(|| Link::new(name.clone(), slot, None));
                link.start = start;
                self.reach(&uid, Phase::Created);
                let early = self.tokens.get_mut(&name).and_then(|token| {
                    token.pod = Some(uid.clone());
                    token.early.take()
                });
                self.tell(Event::Created {
                    name: name.clone(),
                    attempt,
                    uid: uid.clone(),
                    resource_version: resource_version.into(),
                });
                if let Some(address) = early {
                    self.listens(&uid, address);
                }
            }
            CreateOutcome::NameTaken(sighting) => {
                self.forget_attempt(&name);
                self.see_pod(*sighting);
            }
            CreateOutcome::Failed(error) => {
                self.forget_attempt(&name);
                self.metrics.start_failed();
                self.tell(Event::StartFailed {
                    name,
                    attempt,
                    failure: error.into_start_failure(),
                });
            }
        }
    }

    fn forget_attempt(&mut self, name: &PodName) {
        self.tokens.remove(name);
        self.asked.remove(name);
    }

    /// Records a step in the start of a pod, if this process created the pod.
    fn reach(&mut self, uid: &Uid, phase: Phase) {
        let Some(link) = self.links.get_mut(uid) else {
            return;
        };
        // The watch may show the pod before the API server answers the create request.
        let start = match &mut link.start {
            Some(start) => Some(start),
            None => self.asked.get_mut(&link.name),
        };
        if let Some(took) = start.and_then(|start| start.reach(phase)) {
            self.metrics.phase(phase, took);
        }
    }

    fn act(&mut self, action: Action) -> Option<Event> {
        match action {
            Action::Create(create) => return self.create(create),
            Action::Delete(delete) => self.delete(delete),
            Action::Assign(assign) => return self.assign(&assign),
            Action::Reject { request, error } => {
                if let Some(reply) = self.requests.remove(&request) {
                    let _ = reply.send(Verdict::Rejected(error));
                }
            }
            Action::Extend(extensions) => self.extend(extensions),
            Action::Probe { name, uid } => return self.probe(name, uid),
        }
        None
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
