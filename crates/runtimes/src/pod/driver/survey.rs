//! What the driver knows, put together for people.

use super::Driver;
use crate::pod::survey::{Survey, Way};

impl Driver {
    /// Costs a walk over all pods: for people, not for each request.
    pub(super) fn survey(&self) -> Survey {
        let ways = self.links.iter().filter_map(|(uid, link)| {
            let service = self.services.get(link.name.as_str());
            let target = link.target(self.connect, service, &self.namespace)?;
            let way = match target.authority {
                Some(_) => Way::Service(target.address),
                None => Way::Pod(target.address),
            };
            Some((uid.clone(), way))
        });
        let template_error = match &self.templates {
            Some(Err(error)) => Some(error.to_string()),
            _ => None,
        };
        Survey {
            pool: self.pool.snapshot(self.now()),
            ways: ways.collect(),
            template_error,
        }
    }
}
