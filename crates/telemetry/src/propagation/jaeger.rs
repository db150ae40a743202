//! Jaeger's header `uber-trace-id: TRACE:SPAN:PARENT:FLAGS`.

use opentelemetry::{
    Context,
    propagation::{Extractor, Injector, TextMapPropagator, text_map_propagator::FieldIter},
    trace::TraceContextExt,
};

use super::remote_span;

const HEADER: &str = "uber-trace-id";

/// A propagator for Jaeger's trace header; Jaeger's baggage headers are not supported.
#[derive(Debug)]
pub(super) struct Jaeger {
    fields: [String; 1],
}

// === impl Jaeger ===

impl Default for Jaeger {
    fn default() -> Self {
        Self {
            fields: [HEADER.to_owned()],
        }
    }
}

impl TextMapPropagator for Jaeger {
    fn inject_context(&self, context: &Context, injector: &mut dyn Injector) {
        let span = context.span();
        let ids = span.span_context();
        if ids.is_valid() {
            let (trace, span) = (ids.trace_id(), ids.span_id());
            let flags = u8::from(ids.is_sampled());
            // The parent field is deprecated and always 0.
            injector.set(HEADER, format!("{trace}:{span}:0:{flags}"));
        }
    }

    fn extract_with_context(&self, context: &Context, extractor: &dyn Extractor) -> Context {
        match span_context(extractor) {
            Some(ids) => context.with_remote_span_context(ids),
            None => context.clone(),
        }
    }

    fn fields(&self) -> FieldIter<'_> {
        FieldIter::new(&self.fields)
    }
}

fn span_context(extractor: &dyn Extractor) -> Option<opentelemetry::trace::SpanContext> {
    let text = extractor.get(HEADER)?.replace("%3A", ":");
    let mut parts = text.split(':');
    let (trace, span, _parent) = (parts.next()?, parts.next()?, parts.next()?);
    let flags = u8::from_str_radix(parts.next()?, 16).ok()?;
    remote_span(trace, span, flags & 1 == 1)
}
