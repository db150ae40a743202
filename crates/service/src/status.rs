//! The status service: what the runner is doing, for people.
//!
//! It is given a source and knows nothing of what is reported. However many watch, the source is
//! asked a few times a second at most.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures::future::BoxFuture;
use runner_proto::runner_status::{
    self, GetStatusRequest, GetStatusResponse,
    runner_status_server::{RunnerStatus, RunnerStatusServer},
};
use tokio::sync::Mutex;
use tonic::{Request, Response, Status};

use crate::lifecycle::{Lifecycle, Phase};

/// A report serves everyone who asks within this time.
const FRESH: Duration = Duration::from_millis(200);

/// Who knows what there is to report.
pub trait StatusSource: Send + Sync + 'static {
    /// Everything but the phase, which is the server's own to know. Must come to an end by itself.
    fn report(&self) -> BoxFuture<'_, GetStatusResponse>;
}

pub(crate) struct Reports {
    source: Arc<dyn StatusSource>,
    lifecycle: Lifecycle,
    last: Mutex<Option<(Instant, GetStatusResponse)>>,
}

// === impl Reports ===

impl Reports {
    pub(crate) fn server(
        source: Arc<dyn StatusSource>,
        lifecycle: Lifecycle,
    ) -> RunnerStatusServer<Self> {
        RunnerStatusServer::new(Self {
            source,
            lifecycle,
            last: Mutex::new(None),
        })
    }
}

#[tonic::async_trait]
impl RunnerStatus for Reports {
    async fn get_status(
        &self,
        _: Request<GetStatusRequest>,
    ) -> Result<Response<GetStatusResponse>, Status> {
        // Held while the source is asked: those who come meanwhile get the same report.
        let mut last = self.last.lock().await;
        let mut report = match &*last {
            Some((at, report)) if at.elapsed() < FRESH => report.clone(),
            _ => {
                let report = self.source.report().await;
                last.insert((Instant::now(), report)).1.clone()
            }
        };
        report.set_phase(phase(self.lifecycle.phase()));
        Ok(Response::new(report))
    }
}

fn phase(phase: Phase) -> runner_status::Phase {
    match phase {
        Phase::Starting => runner_status::Phase::Starting,
        Phase::Serving => runner_status::Phase::Serving,
        Phase::Draining | Phase::Stopping => runner_status::Phase::Draining,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::future::join_all;

    use super::*;

    #[derive(Default)]
    struct Counting(AtomicUsize);

    impl StatusSource for Counting {
        fn report(&self) -> BoxFuture<'_, GetStatusResponse> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Box::pin(async {
                tokio::task::yield_now().await;
                GetStatusResponse {
                    version: "1".to_owned(),
                    ..GetStatusResponse::default()
                }
            })
        }
    }

    fn reports(source: &Arc<Counting>, lifecycle: &Lifecycle) -> Reports {
        Reports {
            source: source.clone(),
            lifecycle: lifecycle.clone(),
            last: Mutex::new(None),
        }
    }

    async fn ask(reports: &Reports) -> GetStatusResponse {
        let asked = reports.get_status(Request::new(GetStatusRequest {})).await;
        asked.unwrap().into_inner()
    }

    #[tokio::test]
    async fn many_who_ask_at_once_get_one_report() {
        let source = Arc::default();
        let reports = reports(&source, &Lifecycle::default());
        let answers = join_all((0..50).map(|_| ask(&reports))).await;
        assert!(answers.iter().all(|answer| answer.version == "1"));
        assert_eq!(source.0.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn the_phase_is_never_an_old_one() {
        let lifecycle = Lifecycle::default();
        let reports = reports(&Arc::default(), &lifecycle);
        assert_eq!(ask(&reports).await.phase(), runner_status::Phase::Starting);
        lifecycle.ready();
        assert_eq!(ask(&reports).await.phase(), runner_status::Phase::Serving);
        lifecycle.drain(Duration::ZERO);
        assert_eq!(ask(&reports).await.phase(), runner_status::Phase::Draining);
    }
}
