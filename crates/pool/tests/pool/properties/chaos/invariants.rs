//! Invariants of each action, and of the state between events.

use std::collections::{BTreeMap, HashSet};

use runner_pool::{Action, Assign, Create, Delete, Leave, PodName, PodState, Uid};

use super::{Chaos, RETRIES};
use crate::world::secs;

impl Chaos {
    pub(super) fn check(&mut self, action: Action) {
        match action {
            Action::Assign(assign) => self.check_assign(&assign),
            Action::Reject { request, .. } => {
                assert!(
                    self.requests.remove(&request).is_some(),
                    "{request:?} was over"
                );
            }
            Action::Create(create) => self.check_create(create),
            Action::Delete(delete) => self.check_delete(delete),
            Action::Probe { name, uid } => self.probes.push((name, uid)),
            Action::Extend(extensions) => {
                for extension in extensions {
                    let value = extension.reclaim_after;
                    assert!(value > self.now && value == value.to_next_second());
                    let version = self.version();
                    if let Some(pod) = self.pods.get_mut(&extension.uid) {
                        // Written now; the watch shows the value later, or never.
                        pod.version = version;
                        pod.reclaim_after = extension.reclaim_after;
                    }
                }
            }
        }
    }

    fn check_assign(&mut self, assign: &Assign) {
        let running = self
            .requests
            .values()
            .filter(|ask| ask.at.as_ref() == Some(&assign.pod));
        let load = running.count();
        let ask = self
            .requests
            .get_mut(&assign.request)
            .expect("an open request");
        let pod = self.pods.get(&assign.pod).expect("a pod that is there");
        // A delete without a reported result is forgotten after a while.
        let asked = pod.asked.is_some_and(|asked| self.now < asked + secs(20));
        assert_eq!(pod.function, ask.function, "another function's pod");
        assert!(pod.ready && !pod.suspect, "a pod that is not ready");
        assert!(
            !pod.failed && !pod.deleting && !asked,
            "a pod on its way out"
        );
        assert!(
            ask.deadline.is_none_or(|deadline| deadline > self.now),
            "an expired request"
        );
        ask.tries += 1;
        assert!(ask.tries <= 1 + RETRIES, "tried too often");
        if let Some(before) = ask.at.replace(assign.pod.clone()) {
            assert!(self.pods[&before].doubted, "taken from a pod that works");
        }
        let (function, template) = (pod.function, pod.template.clone());
        assert!(
            template.serves_for(&self.current(function)),
            "a pod of another template"
        );
        assert!(
            load < self.functions[function].settings().max_in_flight,
            "more than it holds"
        );
    }

    fn check_create(&mut self, create: Create) {
        let function = self.index(&create.function);
        let current = self.current(function);
        assert_eq!(create.template, current);
        let functions = self.pool.snapshot(self.now).functions;
        let pods: Vec<_> = functions
            .iter()
            .flat_map(|function| &function.pods)
            .collect();
        let named = |name: &PodName| pods.iter().filter(|pod| pod.name == *name).count();
        assert_eq!(named(&create.name), 1, "the name is taken");
        let known = |uid: &Uid| pods.iter().any(|pod| pod.uid.as_ref() == Some(uid));
        let slot = |(uid, pod): (&Uid, &super::Known)| pod.slot == create.slot && known(uid);
        assert!(!self.pods.iter().any(slot), "the slot is taken");
        // The pool no longer waits for a creation that takes longer than the ready timeout.
        self.creates
            .retain(|other| other.name != create.name && named(&other.name) > 0);
        let abandoned = self.abandoned();
        let live = self.pods.iter().filter(|(uid, pod)| {
            pod.function == function
                && pod.template.serves_for(&current)
                && !pod.failed
                && !pod.deleting
                && !abandoned.contains(*uid)
        });
        // A creation under a name that is taken by now will be refused.
        let taken = |name: &PodName| self.pods.values().any(|pod| pod.name == *name);
        let asked = self.creates.iter().filter(|other| {
            self.index(&other.function) == function
                && other.template == current
                && !taken(&other.name)
        });
        let most = self.functions[function].settings().max_pods;
        let (live, asked) = (live.count(), asked.count());
        assert!(
            live + asked < most,
            "more pods than the maximum: {:#?}",
            self.pool
        );
        self.creates.push(create);
    }

    fn abandoned(&self) -> HashSet<Uid> {
        let functions = self.pool.snapshot(self.now).functions;
        let pods = functions.into_iter().flat_map(|function| function.pods);
        // Pods that were given up, or that were never reported to the pool (a lost answer).
        let known: BTreeMap<_, _> = pods
            .filter_map(|pod| Some((pod.uid.clone()?, pod.state)))
            .collect();
        self.pods
            .keys()
            .filter(|uid| {
                known
                    .get(*uid)
                    .is_none_or(|state| matches!(state, PodState::Abandoned | PodState::Failed))
            })
            .cloned()
            .collect()
    }

    fn check_delete(&mut self, delete: Delete) {
        let busy = self
            .requests
            .values()
            .any(|ask| ask.at.as_ref() == Some(&delete.uid));
        let pod = self.pods.get_mut(&delete.uid).expect("a pod that is there");
        assert!(!pod.deleting, "it goes already");
        // A pod that does not answer has lost its requests.
        assert!(!busy || pod.doubted, "a busy pod");
        if delete.why == Leave::Idle {
            assert!(pod.reclaim_after <= self.now || pod.version != delete.resource_version);
        }
        if delete.why == Leave::Failed {
            assert!(pod.failed);
        }
        pod.asked = Some(self.now);
        self.deletes.push(delete);
    }

    /// Checks the invariants that hold between events.
    pub(super) fn check_rest(&mut self) {
        let snapshot = self.pool.snapshot(self.now);
        assert_eq!(self.pool.outstanding(), self.requests.len());
        let mut held = 0;
        for function in &snapshot.functions {
            held += function.queued + function.pods.iter().map(|pod| pod.in_flight).sum::<usize>();
            if function.queued == 0 {
                continue;
            }
            let idle = function
                .pods
                .iter()
                .find(|pod| pod.state == PodState::Ready && pod.current && pod.in_flight < 2);
            assert!(idle.is_none(), "requests wait beside {idle:?}");
            let hope = !function.pods.is_empty() || function.start_failure.is_some();
            assert!(
                hope && self.pool.next_wakeup().is_some(),
                "requests wait for nothing"
            );
        }
        assert_eq!(held, self.requests.len(), "places and requests differ");
        // The requests of a pod are taken back when the pod is given up.
        let pods = snapshot
            .functions
            .into_iter()
            .flat_map(|function| function.pods);
        for pod in pods.filter(|pod| pod.state == PodState::Abandoned) {
            if let Some(uid) = pod.uid {
                self.give_back(&uid);
            }
        }
    }
}
