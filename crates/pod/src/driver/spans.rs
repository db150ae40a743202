//! Spans of the start of a pod, one for each step.

use runner_pool::PodName;
use tracing::{Span, debug_span};

use crate::{Tracing, coordinator::StartStep};

/// Open spans of a start. Those of steps that are never observed end with the start.
pub(super) struct StartSpans {
    /// Whether a request waits for the pod; its answer is then the last step.
    is_requested: bool,
    /// Span of the start, open until the pod is ready.
    start: Option<Span>,
    create: Option<Span>,
    schedule: Option<Span>,
    listen: Option<Span>,
    address: Option<Span>,
    answer: Option<Span>,
}

// === impl StartSpans ===

impl StartSpans {
    /// Opens the spans of a pod that is requested now; `request` is the span of the request that
    /// needs the pod, if any.
    pub(super) fn new(pod: &PodName, request: Option<&Span>, tracing: Option<Tracing>) -> Self {
        let start = debug_span!(parent: None, "start", %pod);
        // The request may end long before the start: the start joins its trace but does not hold
        // its span.
        if let (Some(request), Some(tracing)) = (request, tracing) {
            let mut headers = http::HeaderMap::new();
            (tracing.inject)(request, &mut headers);
            (tracing.join)(&start, &headers);
        }
        Self {
            is_requested: request.is_some(),
            create: Some(debug_span!(parent: &start, "create")),
            schedule: Some(debug_span!(parent: &start, "schedule")),
            listen: Some(debug_span!(parent: &start, "listen")),
            address: Some(debug_span!(parent: &start, "address")),
            answer: None,
            start: Some(start),
        }
    }

    /// Ends the span of a step.
    pub(super) fn reach(&mut self, step: StartStep) {
        match step {
            StartStep::Metadata => {}
            StartStep::Created => self.create = None,
            StartStep::Scheduled => self.schedule = None,
            StartStep::Address => self.address = None,
            StartStep::Listening => self.listen = None,
            StartStep::Ready => {
                self.listen = None;
                if let Some(start) = self.start.take() {
                    if self.is_requested {
                        self.answer = Some(debug_span!(parent: &start, "answer"));
                    }
                    // A span ends at the time it was last exited, even if its children are still
                    // open.
                    start.in_scope(|| ());
                }
            }
            StartStep::Answered => self.answer = None,
        }
    }
}
