//! The standard health service: SERVING exactly while evaluations are accepted.

use std::{collections::HashMap, pin::Pin};

use futures::{Stream, StreamExt};
use runner_proto::health::{
    HealthCheckRequest, HealthCheckResponse, HealthListRequest, HealthListResponse,
    health_check_response::ServingStatus,
    health_server::{self, HealthServer},
};
use tokio_stream::wrappers::WatchStream;
use tonic::{Request, Response, Status};

use crate::lifecycle::{Lifecycle, Phase};

/// The whole server, and the service Porch calls.
const SERVICES: [&str; 2] = ["", "evaluator.FunctionEvaluator"];

/// Answers for the server's lifecycle.
#[derive(Clone, Debug)]
pub struct Health {
    lifecycle: Lifecycle,
}

// === impl Health ===

impl Health {
    /// The health of a server with this lifecycle.
    #[must_use]
    pub fn server(lifecycle: Lifecycle) -> HealthServer<Self> {
        HealthServer::new(Self { lifecycle })
    }
}

#[tonic::async_trait]
impl health_server::Health for Health {
    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        let service = request.into_inner().service;
        let answer = status(self.lifecycle.phase());
        tracing::debug!(service, status = answer.as_str_name(), "health check");
        if SERVICES.contains(&service.as_str()) {
            Ok(Response::new(response(answer)))
        } else {
            Err(Status::not_found(format!(
                "there is no service {service:?} here"
            )))
        }
    }

    async fn list(
        &self,
        _: Request<HealthListRequest>,
    ) -> Result<Response<HealthListResponse>, Status> {
        let answer = response(status(self.lifecycle.phase()));
        let statuses: HashMap<_, _> = SERVICES
            .iter()
            .map(|service| ((*service).to_owned(), answer))
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
        if !SERVICES.contains(&service.as_str()) {
            let unknown =
                futures::stream::once(async { Ok(response(ServingStatus::ServiceUnknown)) });
            // The protocol keeps the stream open: the service might come to be.
            return Ok(Response::new(Box::pin(
                unknown.chain(futures::stream::pending()),
            )));
        }
        let phases = WatchStream::new(self.lifecycle.subscribe());
        let mut last = None;
        let changes = phases.filter_map(move |phase| {
            let now = status(phase);
            let changed = last.replace(now) != Some(now);
            std::future::ready(changed.then(|| Ok(response(now))))
        });
        // An open watch must not hold up the end of a server that has drained.
        let lifecycle = self.lifecycle.clone();
        let end = async move { lifecycle.reached(Phase::Draining).await };
        let changes = changes.take_until(end).chain(futures::stream::once(async {
            Ok(response(ServingStatus::NotServing))
        }));
        Ok(Response::new(Box::pin(changes)))
    }
}

fn status(phase: Phase) -> ServingStatus {
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
