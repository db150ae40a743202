//! The random events: of requests, pods and configuration.

use std::{sync::Arc, time::Duration};

use runner_core::{EvaluationError, Reason};
use runner_pool::{
    Event, Function, Outcome, PodName, PodPhase, Request, RequestId, Settings, StartFailure,
    TemplateVersion, Uid, pod_name, slot_name,
};

use super::{Ask, Chaos, FUNCTIONS, Known, TTL};
use crate::world::{digest, failure, image, secs};

impl Chaos {
    pub(super) fn request(&mut self, which: usize, deadline: usize) {
        let id = RequestId(self.count());
        let function = which % FUNCTIONS.len();
        let deadline = (!deadline.is_multiple_of(4)).then(|| self.now + secs(deadline as u64 % 32));
        self.requests.insert(
            id,
            Ask {
                function,
                deadline,
                at: None,
                tries: 0,
            },
        );
        let function = Arc::clone(&self.functions[function]);
        self.send(Event::Request(Request {
            id,
            function,
            deadline,
        }));
    }

    pub(super) fn cancel(&mut self, which: usize) {
        if let Some(&id) = nth(self.requests.keys(), which) {
            self.requests.remove(&id);
            self.send(Event::Cancel(id));
        }
    }

    pub(super) fn finish(&mut self, which: usize, lost: bool) {
        let running = self
            .requests
            .iter()
            .filter_map(|(id, ask)| Some((*id, ask.at.clone()?)));
        let Some((request, pod)) = nth(running, which) else {
            return;
        };
        let outcome = if lost {
            self.requests.get_mut(&request).expect("it runs").at = None;
            if let Some(known) = self.pods.get_mut(&pod) {
                known.suspect = true;
                known.doubted = true;
            }
            Outcome::PodLost {
                detail: "connection reset".to_owned(),
            }
        } else {
            self.requests.remove(&request);
            Outcome::Answered
        };
        self.send(Event::Done {
            request,
            pod,
            outcome,
        });
    }

    pub(super) fn create(&mut self, which: usize, how: usize) {
        if self.creates.is_empty() {
            return;
        }
        let create = self.creates.remove(which % self.creates.len());
        let (name, attempt) = (create.name.clone(), create.attempt);
        if let Some((uid, _)) = self.pods.iter().find(|(_, pod)| pod.name == name) {
            // The name is taken: the pod that has it is reported.
            let uid = uid.clone();
            let phase = self.phase(&uid);
            self.show(&uid, phase);
            return;
        }
        let fail = |reason| EvaluationError::new(reason, "no");
        match how % 8 {
            1 => {
                let failure = StartFailure::Refused(fail(Reason::PodStartFailed));
                return self.send(Event::StartFailed {
                    name,
                    attempt,
                    failure,
                });
            }
            2 => {
                let failure = StartFailure::Passing(fail(Reason::KubernetesUnreachable));
                return self.send(Event::StartFailed {
                    name,
                    attempt,
                    failure,
                });
            }
            _ => {}
        }
        let uid = Uid::from(format!("{}", self.count()));
        let resource_version = self.version();
        let function = self.index(&create.function);
        let known = Known {
            version: Arc::clone(&resource_version),
            reclaim_after: create.reclaim_after,
            ..Known::new(name.clone(), create.slot, function, create.template)
        };
        self.pods.insert(uid.clone(), known);
        match how % 8 {
            // The API server's answer is lost, but the pod exists.
            3 => {
                let failure = StartFailure::Passing(fail(Reason::KubernetesUnreachable));
                self.send(Event::StartFailed {
                    name,
                    attempt,
                    failure,
                });
                self.show(&uid, PodPhase::Starting(None));
            }
            // The watch is faster than the answer.
            4 => {
                self.show(&uid, PodPhase::Starting(None));
                self.send(Event::Created {
                    name,
                    attempt,
                    uid,
                    resource_version,
                });
            }
            5 => self.send(Event::Created {
                name,
                attempt,
                uid,
                resource_version,
            }),
            _ => {
                let created = Event::Created {
                    name,
                    attempt,
                    uid: uid.clone(),
                    resource_version,
                };
                self.send(created);
                self.answer_of(&uid);
            }
        }
    }

    /// Lets a pod answer a health check, under its own name or a wrong one.
    pub(super) fn answer(&mut self, which: usize, name: usize) {
        let Some(uid) = nth(self.pods.keys(), which).cloned() else {
            return;
        };
        if name.is_multiple_of(4) {
            let name = PodName::from(format!("unknown-{name}"));
            self.send(Event::Ready { name, uid });
        } else {
            self.answer_of(&uid);
        }
    }

    fn answer_of(&mut self, uid: &Uid) {
        let pod = self.pods.get_mut(uid).expect("a pod that is there");
        pod.ready = true;
        // An answer counts as much as that of a probe.
        pod.suspect = false;
        let name = pod.name.clone();
        let uid = uid.clone();
        self.send(Event::Ready { name, uid });
    }

    pub(super) fn observe(&mut self, which: usize, how: usize) {
        let Some(uid) = nth(self.pods.keys(), which).cloned() else {
            return;
        };
        let phase = match how % 8 {
            _ if self.pods[&uid].deleting => PodPhase::Deleting,
            _ if self.pods[&uid].failed => self.phase(&uid),
            0 => PodPhase::Deleting,
            1 => PodPhase::Failed(failure("Evicted", "low on memory")),
            2 | 3 => PodPhase::Starting(Some("pulling".into())),
            _ => PodPhase::Ready,
        };
        if how % 16 > 12 {
            // Another replica uses the pod.
            let pod = self.pods.get_mut(&uid).expect("a pod that is there");
            pod.reclaim_after = (self.now + TTL).to_next_second();
        }
        self.show(&uid, phase);
    }

    pub(super) fn remove(&mut self, which: usize) {
        if let Some(uid) = nth(self.pods.keys(), which).cloned() {
            self.gone(&uid);
        }
    }

    /// Adds a pod of another replica.
    pub(super) fn foreign(&mut self, function: usize, slot: usize, template: usize) {
        let function = function % FUNCTIONS.len();
        let taken = slot_name(self.functions[function].image(), 1 + slot % 3);
        if self.pods.values().any(|pod| pod.slot == taken) {
            return;
        }
        let version = |number: u64| TemplateVersion::new(&number.to_string().as_str().into(), 0);
        // Pods of the Go runner have names generated by the API server, and fewer annotations.
        let earlier = template % 16 >= 12;
        let template = match template % 4 {
            0 => version(self.template - 1),
            1 => version(self.template + 1),
            _ => self.current(function),
        };
        let uid = Uid::from(format!("{}", self.count()));
        let reclaim_after = (self.now + TTL).to_next_second();
        let mut known = Known {
            reclaim_after,
            ..Known::new(pod_name(&taken, None), taken, function, template)
        };
        if earlier {
            known.name = PodName::from(format!("{}-x7k2p", known.slot));
            known.template = {
                let stamp = known.template.stamp();
                let version = stamp.split('+').next().unwrap_or_default();
                TemplateVersion::of_pod(version, 0, "")
            };
        } else {
            // A pending creation under this name would be refused, because the name is taken.
            self.creates.retain(|create| create.name != known.name);
        }
        self.pods.insert(uid.clone(), known);
        self.show(
            &uid,
            if slot.is_multiple_of(2) {
                PodPhase::Ready
            } else {
                PodPhase::Starting(None)
            },
        );
    }

    pub(super) fn delete(&mut self, which: usize, how: usize) {
        if self.deletes.is_empty() {
            return;
        }
        let delete = self.deletes.remove(which % self.deletes.len());
        let (name, uid) = (delete.name, delete.uid);
        let Some(pod) = self.pods.get_mut(&uid) else {
            return;
        };
        let conflict = pod.version != delete.resource_version;
        if conflict || how % 4 == 1 {
            pod.asked = None;
            self.send(Event::DeleteFailed {
                name,
                uid: uid.clone(),
                conflict,
            });
            if conflict {
                let phase = self.phase(&uid);
                self.show_again(&uid, phase);
            }
        } else {
            self.show(&uid, PodPhase::Deleting);
            if how.is_multiple_of(2) {
                self.gone(&uid);
            }
        }
    }

    pub(super) fn probe(&mut self, which: usize, how: usize) {
        if self.probes.is_empty() {
            return;
        }
        let (name, uid) = self.probes.remove(which % self.probes.len());
        if how % 2 == 1 {
            return self.send(Event::ProbeFailed { name, uid });
        }
        if let Some(pod) = self
            .pods
            .get_mut(&uid)
            .filter(|pod| !pod.failed && !pod.deleting)
        {
            pod.suspect = false;
            pod.ready = true;
            self.send(Event::Ready { name, uid });
        }
    }

    pub(super) fn change_template(&mut self) {
        self.template += 1;
        self.send(Event::TemplateChanged(
            self.template.to_string().as_str().into(),
        ));
    }

    pub(super) fn configure(&mut self, max_pods: usize, overrides: u64, ttl: Duration) {
        self.generation += 1;
        let settings = Settings {
            max_pods,
            max_waitlist: 2,
            max_in_flight: 3,
            min_pods: max_pods / 2,
            ttl,
            overrides,
            generation: self.generation,
        };
        self.functions = FUNCTIONS
            .iter()
            .map(|(name, n)| Arc::new(Function::new(&image(name), digest(*n), settings)))
            .collect();
        // The pool gets settings with requests or configuration, so they are sent at once.
        if self.generation > 1 {
            let all = self.functions.clone();
            self.send(Event::Configured(all));
        }
    }
}

fn nth<T>(items: impl Iterator<Item = T>, which: usize) -> Option<T> {
    let mut items: Vec<T> = items.collect();
    let at = which.checked_rem(items.len())?;
    Some(items.swap_remove(at))
}
