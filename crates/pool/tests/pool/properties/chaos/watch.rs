//! Observations sent to the pool, and their effect on the model.

use std::sync::Arc;

use runner_pool::{Event, Function, Observed, PodPhase, TemplateVersion, Uid};

use super::Chaos;
use crate::world::failure;

impl Chaos {
    /// Changes a pod and sends the observation.
    pub(super) fn show(&mut self, uid: &Uid, phase: PodPhase) {
        let version = self.version();
        self.pods.get_mut(uid).expect("a pod that is there").version = version;
        self.show_again(uid, phase);
    }

    /// Sends an observation of a pod without a new resourceVersion.
    pub(super) fn show_again(&mut self, uid: &Uid, phase: PodPhase) {
        let pod = self.pods.get_mut(uid).expect("a pod that is there");
        let version = Arc::clone(&pod.version);
        match &phase {
            PodPhase::Ready => {
                if !std::mem::replace(&mut pod.watch_ready, true) {
                    pod.ready = true;
                    pod.suspect = false;
                }
            }
            PodPhase::Starting(_) => {
                pod.suspect |= std::mem::take(&mut pod.watch_ready);
                pod.doubted |= pod.suspect;
            }
            PodPhase::Failed(_) | PodPhase::FailedAvoidably(_) => pod.failed = true,
            PodPhase::Deleting => pod.deleting = true,
        }
        let failed = pod.failed;
        let seen = Observed {
            name: pod.name.clone(),
            slot: pod.slot.clone(),
            uid: uid.clone(),
            resource_version: version,
            image: Arc::clone(self.functions[pod.function].image()),
            template: pod.template.clone(),
            phase,
            reclaim_after: Some(pod.reclaim_after),
        };
        if failed {
            self.give_back(uid);
        }
        self.send(Event::Pod(seen));
    }

    pub(super) fn gone(&mut self, uid: &Uid) {
        let pod = self.pods.remove(uid).expect("a pod that is there");
        self.give_back(uid);
        self.send(Event::PodGone {
            name: pod.name,
            uid: uid.clone(),
        });
    }

    /// Marks the requests of a dead pod as waiting again in the model.
    pub(super) fn give_back(&mut self, uid: &Uid) {
        for ask in self
            .requests
            .values_mut()
            .filter(|ask| ask.at.as_ref() == Some(uid))
        {
            ask.at = None;
        }
    }

    pub(super) fn phase(&self, uid: &Uid) -> PodPhase {
        let pod = &self.pods[uid];
        match () {
            () if pod.deleting => PodPhase::Deleting,
            () if pod.failed => PodPhase::Failed(failure("Evicted", "low on memory")),
            () if pod.watch_ready => PodPhase::Ready,
            () => PodPhase::Starting(None),
        }
    }

    pub(super) fn current(&self, function: usize) -> TemplateVersion {
        let overrides = self.functions[function].settings().overrides;
        TemplateVersion::new(&self.template.to_string().as_str().into(), overrides)
    }

    pub(super) fn index(&self, function: &Function) -> usize {
        let same = |known: &Arc<Function>| known.image() == function.image();
        self.functions.iter().position(same).expect("one of ours")
    }
}
