//! Zipkin's B3 headers: a single header, or one header per value.
//!
//! Both forms are read; the configuration selects the form that is written.

use opentelemetry::{
    Context,
    propagation::{Extractor, Injector, TextMapPropagator, text_map_propagator::FieldIter},
    trace::TraceContextExt,
};

use super::remote_span;

const SINGLE: &str = "b3";
const TRACE_ID: &str = "x-b3-traceid";
const SPAN_ID: &str = "x-b3-spanid";
const SAMPLED: &str = "x-b3-sampled";
const FLAGS: &str = "x-b3-flags";

/// A propagator that writes one form of B3 and reads both.
#[derive(Debug)]
pub(super) struct B3 {
    is_multi: bool,
    fields: Vec<String>,
}

// === impl B3 ===

impl B3 {
    pub(super) fn single() -> Self {
        Self::new(false, &[SINGLE])
    }

    pub(super) fn multi() -> Self {
        Self::new(true, &[TRACE_ID, SPAN_ID, SAMPLED])
    }

    fn new(is_multi: bool, fields: &[&str]) -> Self {
        Self {
            is_multi,
            fields: fields.iter().map(ToString::to_string).collect(),
        }
    }
}

impl TextMapPropagator for B3 {
    fn inject_context(&self, context: &Context, injector: &mut dyn Injector) {
        let span = context.span();
        let ids = span.span_context();
        if !ids.is_valid() {
            return;
        }
        let (trace, span) = (ids.trace_id(), ids.span_id());
        let sampled = if ids.is_sampled() { "1" } else { "0" };
        if self.is_multi {
            injector.set(TRACE_ID, trace.to_string());
            injector.set(SPAN_ID, span.to_string());
            injector.set(SAMPLED, sampled.to_owned());
        } else {
            injector.set(SINGLE, format!("{trace}-{span}-{sampled}"));
        }
    }

    fn extract_with_context(&self, context: &Context, extractor: &dyn Extractor) -> Context {
        match from_single(extractor).or_else(|| from_multi(extractor)) {
            Some(ids) => context.with_remote_span_context(ids),
            None => context.clone(),
        }
    }

    fn fields(&self) -> FieldIter<'_> {
        FieldIter::new(&self.fields)
    }
}

/// Parses `TRACE-SPAN[-SAMPLED[-PARENT]]`; `d` (debug) as SAMPLED also means sampled.
fn from_single(extractor: &dyn Extractor) -> Option<opentelemetry::trace::SpanContext> {
    let mut parts = extractor.get(SINGLE)?.split('-');
    let (trace, span) = (parts.next()?, parts.next()?);
    // Without a sampling decision the receiver decides. The trace is sampled, because the caller
    // sent it.
    let sampled = parts.next() != Some("0");
    remote_span(trace, span, sampled)
}

fn from_multi(extractor: &dyn Extractor) -> Option<opentelemetry::trace::SpanContext> {
    let (trace, span) = (extractor.get(TRACE_ID)?, extractor.get(SPAN_ID)?);
    let unsampled = matches!(extractor.get(SAMPLED), Some("0" | "false"));
    let sampled = !unsampled || extractor.get(FLAGS) == Some("1");
    remote_span(trace, span, sampled)
}
