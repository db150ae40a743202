//! The status service: reports the current state of the runner.
//!
//! The reports come from a [`StatusSource`], which is queried a few times a second at most,
//! regardless of the number of clients.

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

/// Time for which a report is reused (200 ms).
const REPORT_LIFETIME: Duration = Duration::from_millis(200);

/// A source of status reports.
pub trait StatusSource: Send + Sync + 'static {
    /// Returns a report without the phase, which the server adds.
    ///
    /// No time limit applies, so the future must complete by itself.
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
        // Locked during the query, so that concurrent calls get the same report.
        let mut last = self.last.lock().await;
        let mut report = match &*last {
            Some((at, report)) if at.elapsed() < REPORT_LIFETIME => report.clone(),
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
    async fn shares_one_report_among_concurrent_calls() {
        let source = Arc::default();
        let reports = reports(&source, &Lifecycle::default());
        let answers = join_all((0..50).map(|_| ask(&reports))).await;
        assert!(answers.iter().all(|answer| answer.version == "1"));
        assert_eq!(source.0.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn reports_the_current_phase_with_a_reused_report() {
        let lifecycle = Lifecycle::default();
        let reports = reports(&Arc::default(), &lifecycle);
        assert_eq!(ask(&reports).await.phase(), runner_status::Phase::Starting);
        lifecycle.ready();
        assert_eq!(ask(&reports).await.phase(), runner_status::Phase::Serving);
        lifecycle.drain(Duration::ZERO);
        assert_eq!(ask(&reports).await.phase(), runner_status::Phase::Draining);
    }
}
