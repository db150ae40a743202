//! The simulated API server: pods, resourceVersions, preconditions.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use runner_core::ImageReference;
use runner_pool::{
    Create, Delete, Event, Extension, Observed, PodName, PodPhase, TemplateVersion, Time, Uid,
};

#[derive(Default)]
pub struct Cluster {
    pods: BTreeMap<PodName, Stored>,
    by_uid: HashMap<Uid, PodName>,
    changes: Vec<Event>,
    version: u64,
}

struct Stored {
    slot: PodName,
    uid: Uid,
    version: u64,
    image: Arc<ImageReference>,
    template: TemplateVersion,
    reclaim_after: Time,
    ready: bool,
}

pub enum Refusal {
    Conflict,
    NotFound,
}

impl Cluster {
    /// Creates a pod, or returns the pod that already has the name.
    pub fn create(&mut self, create: &Create) -> Result<(Uid, Arc<str>), Box<Observed>> {
        if let Some(pod) = self.pods.get(&create.name) {
            return Err(Box::new(pod.observed(&create.name)));
        }
        self.version += 1;
        let uid = Uid::from(format!("uid-{}", self.version));
        let pod = Stored {
            slot: create.slot.clone(),
            uid: uid.clone(),
            version: self.version,
            image: Arc::clone(create.function.image()),
            template: create.template.clone(),
            reclaim_after: create.reclaim_after,
            ready: false,
        };
        self.by_uid.insert(uid.clone(), create.name.clone());
        self.changes.push(Event::Pod(pod.observed(&create.name)));
        self.pods.insert(create.name.clone(), pod);
        Ok((uid, self.version.to_string().into()))
    }

    pub fn ready(&mut self, uid: &Uid) {
        self.change(uid, |pod| pod.ready = true);
    }

    pub fn delete(&mut self, delete: &Delete) -> Result<(), Refusal> {
        let Some(pod) = self.pods.get(&delete.name) else {
            return Err(Refusal::NotFound);
        };
        if pod.uid != delete.uid || *pod.version.to_string() != *delete.resource_version {
            return Err(Refusal::Conflict);
        }
        self.remove(&delete.name);
        Ok(())
    }

    pub fn extend(&mut self, extension: &Extension) {
        self.change(&extension.uid, |pod| {
            pod.reclaim_after = extension.reclaim_after;
        });
    }

    pub fn runs(&self, uid: &Uid) -> bool {
        self.by_uid.contains_key(uid)
    }

    pub fn len(&self) -> usize {
        self.pods.len()
    }

    /// Kills a pod, but never two of one function at a time, because a retry could be lost as well.
    pub fn kill_one(
        &mut self,
        draw: u64,
        spared: &HashSet<Uid>,
        hit: &mut HashSet<Arc<ImageReference>>,
    ) {
        let Some(at) = usize::try_from(draw)
            .expect("64 bits")
            .checked_rem(self.pods.len())
        else {
            return;
        };
        let victim = self
            .pods
            .iter()
            .nth(at)
            .filter(|(_, pod)| !spared.contains(&pod.uid));
        if let Some((name, pod)) = victim
            && hit.insert(Arc::clone(&pod.image))
        {
            let name = name.clone();
            self.remove(&name);
        }
    }

    pub fn take_changes(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.changes)
    }

    /// Asserts that no function has more than `most` pods.
    pub fn check(&self, most: usize) {
        let mut counts: HashMap<&ImageReference, usize> = HashMap::new();
        for pod in self.pods.values() {
            *counts.entry(&pod.image).or_default() += 1;
        }
        for (image, count) in counts {
            assert!(count <= most, "{count} pods of {image}");
        }
    }

    fn change(&mut self, uid: &Uid, how: impl FnOnce(&mut Stored)) {
        let Some(name) = self.by_uid.get(uid) else {
            return;
        };
        let Some(pod) = self.pods.get_mut(name) else {
            return;
        };
        self.version += 1;
        pod.version = self.version;
        how(pod);
        self.changes.push(Event::Pod(pod.observed(name)));
    }

    fn remove(&mut self, name: &PodName) {
        if let Some(pod) = self.pods.remove(name) {
            self.by_uid.remove(&pod.uid);
            let gone = Event::PodGone {
                name: name.clone(),
                uid: pod.uid.clone(),
            };
            self.changes.push(gone);
        }
    }
}

impl Stored {
    fn observed(&self, name: &PodName) -> Observed {
        Observed {
            name: name.clone(),
            slot: self.slot.clone(),
            uid: self.uid.clone(),
            resource_version: self.version.to_string().into(),
            image: Arc::clone(&self.image),
            template: self.template.clone(),
            phase: if self.ready {
                PodPhase::Ready
            } else {
                PodPhase::Starting(None)
            },
            reclaim_after: Some(self.reclaim_after),
        }
    }
}
