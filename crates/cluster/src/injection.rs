//! Choice of the way in which the wrapper gets into function pods (`--wrapper-injection`).
//!
//! Where the pod template is the built-in one, `auto` takes the fastest way that the cluster
//! supports: image volume, container beside the function, init container. Dry runs show which pods
//! the API server accepts. A node that cannot mount an image volume shows in the status of the pod,
//! and the next pod is made in the next way.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use runner_pool::PodFailure;

use crate::{
    ApiError, Cluster, Injection, RenderOptions, Templates, names::COPY_CONTAINER, sample_pod,
};

/// Name of the pod in dry runs. No pod of this name is ever created.
const SAMPLE: &str = "wrapper-injection-dry-run";
/// Time after which a refusal or a failed pod counts no more: clusters are upgraded.
const REMEMBER: Duration = Duration::from_secs(3600);
/// Time after which a question that got no clear answer is asked again.
const ASK_AGAIN: Duration = Duration::from_secs(30);
/// All ways, the fastest first.
const WAYS: [Injection; 3] = [Injection::Image, Injection::Container, Injection::Init];
/// States of a container whose volume the node could not mount, or whose program was not there.
const MOUNT_FAILURES: [&str; 2] = ["CreateContainerError", "RunContainerError"];
/// Reasons of a container's end before its program ran. A pod that restarts such a container shows
/// them behind `CrashLoopBackOff`.
const NEVER_RAN: [&str; 2] = ["StartError", "ContainerCannotRun"];
/// States that mean that an image cannot be pulled, whichever container needs it.
const PULL_FAILURES: [&str; 3] = ["ErrImagePull", "ImagePullBackOff", "InvalidImageName"];

/// The value of `--wrapper-injection`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InjectionPolicy {
    /// The fastest way that the cluster supports where the pod template is the built-in one; a
    /// template of the user's own is used as it is written.
    #[default]
    Auto,
    /// Always the same way.
    Fixed(Injection),
}

/// The way that new pods are made in, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InjectionStatus {
    /// The way in use.
    pub injection: Injection,
    /// The reason in one word, for metrics.
    pub reason: InjectionReason,
    /// The reason in a sentence, for people.
    pub detail: String,
}

/// The reason for a way, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InjectionReason {
    /// The flag names this way.
    Flag,
    /// The pod template is the user's own.
    Template,
    /// It is the fastest way, and the cluster supports it.
    Supported,
    /// The API server refuses the faster way.
    Refused,
    /// A pod made in the faster way did not start.
    Failed,
    /// The API server did not say whether it supports the faster way.
    Unknown,
}

/// Chooses the way for each pod, and remembers what did not work.
pub struct Injector {
    policy: InjectionPolicy,
    cluster: Cluster,
    render: Arc<RenderOptions>,
    /// The API server's last answer. Locked while it is asked, so that it is asked once.
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

/// Answer of the API server to dry runs.
#[derive(Clone)]
enum Support {
    /// It accepts pods made in the fastest way.
    All,
    /// It accepts pods made in this way, and refuses faster ones for the reason given.
    From(Injection, String),
    /// It refuses every pod, or cannot be asked.
    Unknown(String),
}

// === impl Injector ===

impl Injector {
    /// Returns an injector that has not asked the API server yet.
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

    /// Returns the way for the next pod. Asks the API server where its answer is missing or old.
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

    /// Returns the way for a pod that the API server refused in the way it was made. None: the
    /// refusal has nothing to do with it.
    pub async fn instead_of(&self, refused: Injection, templates: &Templates) -> Option<Injection> {
        if self.policy != InjectionPolicy::Auto || refused == Injection::Init {
            return None;
        }
        *self.support.lock().await = None;
        let next = self.choose(templates).await;
        (next != refused).then_some(next)
    }

    /// Takes note of a pod that did not start. Returns whether its way is the likely cause and the
    /// next pod is made in another.
    pub fn failed(&self, injection: Injection, failure: &PodFailure) -> bool {
        let reason = &*failure.reason;
        let likely = match injection {
            Injection::Image => {
                let never_ran = || NEVER_RAN.iter().any(|end| failure.message.contains(end));
                MOUNT_FAILURES.contains(&reason) || (reason == "CrashLoopBackOff" && never_ran())
            }
            Injection::Container => {
                let of_copying = format!("container {COPY_CONTAINER}:");
                failure.message.starts_with(&of_copying) && !PULL_FAILURES.contains(&reason)
            }
            Injection::Init => false,
        };
        likely && self.give_up(injection, &format!("{reason}: {}", failure.message))
    }

    /// Takes note of a pod that has a node and no address for a long time. A kubelet without image
    /// volumes leaves a pod in this state and says why only in an event. Returns whether the pod's
    /// way is the likely cause and the next pod is made in another.
    pub fn stuck(&self, injection: Injection) -> bool {
        injection == Injection::Image
            && self.give_up(injection, "its node did not begin to start it in time")
    }

    /// Returns the way in use. None: no template has been seen yet.
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
        let ways = WAYS.into_iter().skip_while(|way| *way != first);
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
        state.failures.retain(|known| known.at.elapsed() < REMEMBER);
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
                Support::Unknown(_) => ASK_AGAIN,
                Support::All | Support::From(..) => REMEMBER,
            };
            if at.elapsed() < lasts {
                return support.clone();
            }
        }
        let support = self.ask(templates).await;
        *known = Some((support.clone(), Instant::now()));
        support
    }

    /// Asks by dry runs, the fastest way first. A refusal counts only if a pod made in a slower way
    /// is accepted: otherwise it is about something else, such as a quota.
    async fn ask(&self, templates: &Templates) -> Support {
        let mut refusals = Vec::new();
        for injection in WAYS {
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
                Err(error) => return Support::Unknown(error.to_string()),
            }
        }
        let first = refusals.swap_remove(0);
        Support::Unknown(format!("the API server accepts no pod at present: {first}"))
    }

    /// Returns the way in which the pod is made that the API server would store.
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
