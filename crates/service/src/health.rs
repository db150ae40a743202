//! The standard health service.
//!
//! | service | SERVING |
//! |---|---|
//! | `""`, `evaluator.FunctionEvaluator` | while evaluations are accepted: for readiness |
//! | `liveness` | from the start to the end of the process, unless it is stuck: for liveness |

use std::{collections::HashMap, pin::Pin, sync::Arc};

use futures::{Stream, StreamExt};
use runner_proto::health::{
    HealthCheckRequest, HealthCheckResponse, HealthListRequest, HealthListResponse,
    health_check_response::ServingStatus,
    health_server::{self, HealthServer},
};
use tokio_stream::wrappers::WatchStream;
use tonic::{Request, Response, Status};

use crate::lifecycle::{Lifecycle, Phase};

/// Names for readiness: the whole server, and the service that Porch calls.
const READINESS: [&str; 2] = ["", "evaluator.FunctionEvaluator"];
/// Name for liveness: `NOT_SERVING` means that the process should be restarted.
const LIVENESS: &str = "liveness";

/// A check of whether some part of the process is stuck; returns a description of the problem.
pub type StuckCheck = Arc<dyn Fn() -> Option<String> + Send + Sync>;

/// The health service of a server.
pub struct Health {
    lifecycle: Lifecycle,
    stuck: Option<StuckCheck>,
}

// === impl Health ===

impl Health {
    /// Returns the health service of a server with this lifecycle.
    #[must_use]
    pub fn server(lifecycle: Lifecycle, stuck: Option<StuckCheck>) -> HealthServer<Self> {
        HealthServer::new(Self { lifecycle, stuck })
    }

    /// Returns the status of a service, or none if there is no service of that name.
    fn status_of(&self, service: &str) -> Option<ServingStatus> {
        if READINESS.contains(&service) {
            return Some(readiness(self.lifecycle.phase()));
        }
        (service == LIVENESS).then(|| match self.stuck.as_ref().and_then(|stuck| stuck()) {
            Some(problem) => {
                tracing::error!("this process should be restarted: {problem}");
                ServingStatus::NotServing
            }
            None => ServingStatus::Serving,
        })
    }
}

#[tonic::async_trait]
impl health_server::Health for Health {
    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        let service = request.into_inner().service;
        let Some(answer) = self.status_of(&service) else {
            return Err(Status::not_found(format!(
                "there is no service {service:?} here"
            )));
        };
        tracing::debug!(service, status = answer.as_str_name(), "health check");
        Ok(Response::new(response(answer)))
    }

    async fn list(
        &self,
        _: Request<HealthListRequest>,
    ) -> Result<Response<HealthListResponse>, Status> {
        let services = READINESS.into_iter().chain([LIVENESS]);
        let statuses: HashMap<_, _> = services
            .filter_map(|service| Some((service.to_owned(), response(self.status_of(service)?))))
            .collect();
        Ok(Response::new(HealthListResponse { statuses }))
    }

    type WatchStream =
        Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send + 'static>>;

    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let service = request.into_inner().service;
        // An open watch must not delay the shutdown of a drained server.
        let lifecycle = self.lifecycle.clone();
        let end = async move { lifecycle.reached(Phase::Draining).await };
        if !READINESS.contains(&service.as_str()) {
            // The check for stuck parts runs on demand and reports no changes, so a watch shows it
            // once.
            let status = self.status_of(&service);
            let status = status.unwrap_or(ServingStatus::ServiceUnknown);
            let first = futures::stream::once(async move { Ok(response(status)) });
            // The protocol requires an open stream: the service might be added later.
            let open = first.chain(futures::stream::pending()).take_until(end);
            return Ok(Response::new(Box::pin(open)));
        }
        let phases = WatchStream::new(self.lifecycle.subscribe());
        let mut last = None;
        let changes = phases.filter_map(move |phase| {
            let now = readiness(phase);
            let changed = last.replace(now) != Some(now);
            std::future::ready(changed.then(|| Ok(response(now))))
        });
        let changes = changes.take_until(end).chain(futures::stream::once(async {
            Ok(response(ServingStatus::NotServing))
        }));
        Ok(Response::new(Box::pin(changes)))
    }
}

fn readiness(phase: Phase) -> ServingStatus {
    match phase {
        Phase::Serving => ServingStatus::Serving,
        Phase::Starting | Phase::Draining | Phase::Stopping => ServingStatus::NotServing,
    }
}

fn response(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse {
        status: status.into(),
    }
}
