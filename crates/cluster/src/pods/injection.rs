//! Chooses the injection of new function pods (`--wrapper-injection`).
//!
//! With the built-in pod template, `auto` takes the fastest injection that the cluster supports:
//! image volume, container beside the function, init container. Dry runs show which pods the API
//! server accepts. If a node cannot mount an image volume, the status of the pod shows it, and the
//! next pod is made with the next injection.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use runner_core::with_causes;
use runner_pool::PodFailure;

use crate::{
    ApiError, Cluster, Injection, RenderOptions, Templates,
    names::{COPY_CONTAINER, TOOLS},
    sample_pod,
};

/// Name of the pod in dry runs. No pod of this name is ever created.
const SAMPLE: &str = "wrapper-injection-dry-run";
/// Time after which a refusal or a failed pod is forgotten, since clusters are upgraded.
const RESULT_LIFETIME: Duration = Duration::from_secs(3600);
/// Time between dry runs while their result is unclear.
const UNKNOWN_LIFETIME: Duration = Duration::from_secs(30);
/// All injections, the fastest first.
const FASTEST_FIRST: [Injection; 3] = [Injection::Image, Injection::Container, Injection::Init];
/// Parts of messages that show that a container's image volume is missing or cannot be mounted.
///
/// The built-in template has no other volume. Kubelets pass image volumes without a host path,
/// which container runtimes without support for them refuse in their own words, containerd with
/// `failed to mkdir ""`. A runtime that ignores the volume does not find the wrapper's program.
/// Without such a part the cause is the function's own, for example a user that its image lacks.
const IMAGE_VOLUME_EVIDENCE: [&str; 7] = [
    TOOLS,
    "mkdir \"\"",
    "host path",
    "hostpath",
    "image volume",
    "invalid mount",
    "invalid volume",
];
/// Waiting reasons of a container whose volume cannot be mounted or whose program does not exist.
const MOUNT_FAILURES: [&str; 2] = ["CreateContainerError", "RunContainerError"];
/// Termination reasons of a container whose program never ran.
///
/// For a restarted container they are in the message of the `CrashLoopBackOff` failure.
const NEVER_RAN: [&str; 2] = ["StartError", "ContainerCannotRun"];
/// Waiting reasons of any container whose image cannot be pulled.
const PULL_FAILURES: [&str; 3] = ["ErrImagePull", "ImagePullBackOff", "InvalidImageName"];

/// The value of `--wrapper-injection`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InjectionPolicy {
    /// The fastest supported injection with the built-in pod template.
    ///
    /// A template of the user's own is used as it is written.
    #[default]
    Auto,
    /// Always the given injection.
    Fixed(Injection),
}

/// The injection of new pods, and the reason for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InjectionStatus {
    /// The injection in use.
    pub injection: Injection,
    /// The reason in one word, for metrics.
    pub reason: InjectionReason,
    /// The reason in a sentence, for people.
    pub detail: String,
}

/// The reason for the choice of an injection, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InjectionReason {
    /// The flag names this injection.
    Flag,
    /// The pod template is the user's own.
    Template,
    /// The cluster supports this injection, and it is the fastest.
    Supported,
    /// The API server refuses the faster injection.
    Refused,
    /// A pod with the faster injection did not start.
    Failed,
    /// Dry runs did not show whether the API server supports the faster injection.
    Unknown,
}

/// The chooser of the injection of each pod, with a memory of injections that failed.
pub struct Injector {
    policy: InjectionPolicy,
    cluster: Cluster,
    render: Arc<RenderOptions>,
    /// Result of the last dry runs and its time. Locked during dry runs, so that they run once.
    support: tokio::sync::Mutex<Option<(Support, Instant)>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    failures: Vec<Failure>,
    status: Option<InjectionStatus>,
}

struct Failure {
    injection: Injection,
    why: String,
    at: Instant,
}

/// The result of dry runs.
#[derive(Clone)]
enum Support {
    /// The API server accepts pods with the fastest injection.
    All,
    /// The API server accepts pods with this injection and refuses faster ones for this reason.
    From(Injection, String),
    /// The API server refuses every pod, or does not answer.
    Unknown(String),
}

// === impl Injector ===

impl Injector {
    /// Returns an injector that has made no dry run yet.
    #[must_use]
    pub fn new(policy: InjectionPolicy, cluster: Cluster, render: Arc<RenderOptions>) -> Self {
        Self {
            policy,
            cluster,
            render,
            support: tokio::sync::Mutex::default(),
            state: Mutex::default(),
        }
    }

    /// Returns the injection for the next pod.
    ///
    /// Makes dry runs if their last result is missing or too old.
    pub async fn choose(&self, templates: &Templates) -> Injection {
        let status = match self.policy {
            InjectionPolicy::Fixed(injection) => {
                let detail = format!("--wrapper-injection={injection}");
                InjectionStatus::new(injection, InjectionReason::Flag, detail)
            }
            InjectionPolicy::Auto if !templates.is_built_in() => InjectionStatus::new(
                Injection::Init,
                InjectionReason::Template,
                "the pod template is not the built-in one, so it is used as it is written"
                    .to_owned(),
            ),
            InjectionPolicy::Auto => self.fastest(templates).await,
        };
        let injection = status.injection;
        let mut state = self.lock();
        if state.status.as_ref() != Some(&status) {
            tracing::info!(way = %injection, why = status.detail, "wrapper injection");
            state.status = Some(status);
        }
        injection
    }

    /// Returns another injection for a pod that the API server refused.
    ///
    /// Returns `None` if the refusal is unrelated to the injection.
    pub async fn alternative_to(
        &self,
        refused: Injection,
        templates: &Templates,
    ) -> Option<Injection> {
        if self.policy != InjectionPolicy::Auto || refused == Injection::Init {
            return None;
        }
        *self.support.lock().await = None;
        let next = self.choose(templates).await;
        (next != refused).then_some(next)
    }

    /// Records a pod that did not start.
    ///
    /// Returns whether the injection is the likely cause; then the next pod is made with another.
    pub fn record_failure(&self, injection: Injection, failure: &PodFailure) -> bool {
        let reason = &*failure.reason;
        let likely = match injection {
            Injection::Image => {
                let never_ran = || NEVER_RAN.iter().any(|end| failure.message.contains(end));
                let message = failure.message.to_lowercase();
                let is_of_volume = IMAGE_VOLUME_EVIDENCE
                    .iter()
                    .any(|part| message.contains(part));
                is_of_volume
                    && (MOUNT_FAILURES.contains(&reason)
                        || (reason == "CrashLoopBackOff" && never_ran()))
            }
            Injection::Container => {
                let of_copying = format!("container {COPY_CONTAINER}:");
                failure.message.starts_with(&of_copying) && !PULL_FAILURES.contains(&reason)
            }
            Injection::Init => false,
        };
        likely && self.give_up(injection, &format!("{reason}: {}", failure.message))
    }

    /// Records a pod that was scheduled long ago and still has no address.
    ///
    /// A kubelet without image volumes leaves a pod in this state and gives the reason only in an
    /// event. Returns whether the injection is the likely cause; then the next pod is made with
    /// another.
    pub fn record_stuck(&self, injection: Injection) -> bool {
        injection == Injection::Image
            && self.give_up(injection, "its node did not begin to start it in time")
    }

    /// Returns the injection in use, or `None` before the first choice.
    #[must_use]
    pub fn status(&self) -> Option<InjectionStatus> {
        self.lock().status.clone()
    }

    fn give_up(&self, injection: Injection, why: &str) -> bool {
        let mut state = self.lock();
        let own_template = state
            .status
            .as_ref()
            .is_none_or(|status| status.reason == InjectionReason::Template);
        if self.policy != InjectionPolicy::Auto || own_template {
            return false;
        }
        state.failures.retain(|known| known.injection != injection);
        state.failures.push(Failure {
            injection,
            why: format!("a pod made with {} did not start: {why}", injection.named()),
            at: Instant::now(),
        });
        true
    }

    async fn fastest(&self, templates: &Templates) -> InjectionStatus {
        let (first, mut reason, mut detail) = match self.support(templates).await {
            Support::All => {
                let detail = "the API server accepts image volumes".to_owned();
                (Injection::Image, InjectionReason::Supported, detail)
            }
            Support::From(injection, why) => (injection, InjectionReason::Refused, why),
            Support::Unknown(why) => (Injection::Container, InjectionReason::Unknown, why),
        };
        let ways = FASTEST_FIRST.into_iter().skip_while(|way| *way != first);
        for injection in ways {
            match self.failure(injection) {
                Some(why) => (reason, detail) = (InjectionReason::Failed, why),
                None => return InjectionStatus::new(injection, reason, detail),
            }
        }
        InjectionStatus::new(Injection::Init, reason, detail)
    }

    fn failure(&self, injection: Injection) -> Option<String> {
        let mut state = self.lock();
        state
            .failures
            .retain(|known| known.at.elapsed() < RESULT_LIFETIME);
        let known = state.failures.iter();
        known
            .filter(|failure| failure.injection == injection)
            .map(|failure| failure.why.clone())
            .next()
    }

    async fn support(&self, templates: &Templates) -> Support {
        let mut known = self.support.lock().await;
        if let Some((support, at)) = &*known {
            let lasts = match support {
                Support::Unknown(_) => UNKNOWN_LIFETIME,
                Support::All | Support::From(..) => RESULT_LIFETIME,
            };
            if at.elapsed() < lasts {
                return support.clone();
            }
        }
        let support = self.run_dry_runs(templates).await;
        *known = Some((support.clone(), Instant::now()));
        support
    }

    /// Makes dry runs, the fastest injection first.
    ///
    /// A refusal counts only if a pod with a slower injection is accepted; otherwise it has another
    /// cause, such as a quota.
    async fn run_dry_runs(&self, templates: &Templates) -> Support {
        let mut refusals = Vec::new();
        for injection in FASTEST_FIRST {
            match self.dry_run(injection, templates).await {
                Ok(Injection::Image) => return Support::All,
                Ok(_) if injection == Injection::Image => {
                    refusals.push("the API server drops image volumes".to_owned());
                }
                Ok(_) => return Support::From(injection, refusals.join("; ")),
                Err(ApiError::Refused(why)) => {
                    let way = injection.named();
                    refusals.push(format!("the API server refuses {way}: {why}"));
                }
                Err(error) => return Support::Unknown(with_causes(&error)),
            }
        }
        let first = refusals.swap_remove(0);
        Support::Unknown(format!("the API server accepts no pod at present: {first}"))
    }

    /// Returns the injection of the pod that the API server would store.
    async fn dry_run(
        &self,
        injection: Injection,
        templates: &Templates,
    ) -> Result<Injection, ApiError> {
        let options = RenderOptions {
            injection,
            ..(*self.render).clone()
        };
        let sample = sample_pod(SAMPLE, templates, &options);
        let accepted = self.cluster.dry_run(&sample).await?;
        Ok(Injection::of(&accepted))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl InjectionStatus ===

impl InjectionStatus {
    fn new(injection: Injection, reason: InjectionReason, detail: String) -> Self {
        Self {
            injection,
            reason,
            detail,
        }
    }
}

// === impl InjectionReason ===

impl fmt::Display for InjectionReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Flag => "flag",
            Self::Template => "template",
            Self::Supported => "supported",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
        })
    }
}

#[cfg(test)]
mod tests;
