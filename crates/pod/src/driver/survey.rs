//! Collects the state of all pods.

use super::Driver;
use crate::survey::{Survey, Way};

impl Driver {
    /// Returns the state of all pods. Visits every pod, so it is not for use in each request.
    pub(super) fn survey(&self) -> Survey {
        let ways = self.links.iter().filter_map(|(uid, link)| {
            let service = self.services.get(link.slot.as_str());
            let in_use = link.line.as_ref().map(|line| line.target.clone());
            let target =
                in_use.or_else(|| link.target(self.connect, service, &self.service_domain))?;
            let way = match target.authority {
                Some(_) => Way::Service(target.address),
                None => Way::Pod(target.address),
            };
            Some((uid.clone(), way))
        });
        let starts = self.links.iter().filter_map(|(uid, link)| {
            let start = link.start.as_ref()?;
            Some((uid.clone(), start.phases()))
        });
        Survey {
            pool: self.pool.snapshot(self.now()),
            ways: ways.collect(),
            starts: starts.collect(),
            announcements_refused: self.refused,
            cold: self.cold.clone(),
            injection: self.creator.injector.status(),
            template_error: self.template_error.as_ref().map(ToString::to_string),
        }
    }
}
