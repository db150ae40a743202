//! Propagates a trace from the headers of a request to the headers of outgoing requests.
//!
//! If this process exports no spans, the caller's trace context is passed on unchanged, so that a
//! process without an exporter does not split a trace in two.

#[cfg(feature = "propagators")]
mod b3;
#[cfg(feature = "propagators")]
mod jaeger;

use http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::{
    Context,
    baggage::BaggageExt,
    global,
    propagation::{Extractor, Injector, TextMapCompositePropagator, TextMapPropagator},
    trace::TraceContextExt,
};
use opentelemetry_sdk::propagation::{BaggagePropagator, TraceContextPropagator};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::{Registry, registry::LookupSpan};

use crate::settings::Propagator;

/// Makes the trace in a request's headers, if any, the parent of the span that handles the request.
///
/// Must be called before the span has children or is injected into other requests.
pub fn set_parent(span: &Span, headers: &HeaderMap) {
    let parent = global::get_text_map_propagator(|propagator| {
        propagator.extract_with_context(&Context::new(), &Headers(headers))
    });
    let is_empty = !parent.span().span_context().is_valid() && parent.baggage().is_empty();
    if !is_empty && span.set_parent(parent.clone()).is_err() {
        store(span, parent);
    }
}

/// Writes the trace context of a span into the headers of an outgoing request.
pub fn inject(span: &Span, headers: &mut HeaderMap) {
    let own = span.context();
    let context = if own.span().span_context().is_valid() {
        Some(own)
    } else {
        stored(span)
    };
    if let Some(context) = context {
        global::get_text_map_propagator(|propagator| {
            propagator.inject_context(&context, &mut HeadersMut(headers));
        });
    }
}

/// Installs the propagators for this process; an empty list disables propagation.
pub(crate) fn install(propagators: &[Propagator]) {
    let propagators = propagators
        .iter()
        .map(|propagator| -> Box<dyn TextMapPropagator + Send + Sync> {
            match propagator {
                Propagator::TraceContext => Box::new(TraceContextPropagator::new()),
                Propagator::Baggage => Box::new(BaggagePropagator::new()),
                #[cfg(feature = "propagators")]
                Propagator::B3 => Box::new(b3::B3::single()),
                #[cfg(feature = "propagators")]
                Propagator::B3Multi => Box::new(b3::B3::multi()),
                #[cfg(feature = "propagators")]
                Propagator::Jaeger => Box::new(jaeger::Jaeger::default()),
            }
        })
        .collect();
    global::set_text_map_propagator(TextMapCompositePropagator::new(propagators));
}

/// Returns a remote span context from hexadecimal ids, or `None` if they are malformed or zero.
#[cfg(feature = "propagators")]
fn remote_span(
    trace: &str,
    span: &str,
    sampled: bool,
) -> Option<opentelemetry::trace::SpanContext> {
    use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};
    let trace = TraceId::from_hex(trace).ok()?;
    let span = SpanId::from_hex(span).ok()?;
    let flags = TraceFlags::default().with_sampled(sampled);
    let ids = SpanContext::new(trace, span, flags, true, TraceState::default());
    ids.is_valid().then_some(ids)
}

/// The trace context of a caller, stored in the extensions of a span that is not exported.
struct CallerContext(Context);

/// Stores the trace context of a caller in a span that is not exported.
fn store(span: &Span, context: Context) {
    span.with_subscriber(|(id, subscriber)| {
        if let Some(span) = subscriber
            .downcast_ref::<Registry>()
            .and_then(|all| all.span(id))
        {
            span.extensions_mut().replace(CallerContext(context));
        }
    });
}

/// Returns the trace context that [`store`] put into a span or one of its ancestors.
fn stored(span: &Span) -> Option<Context> {
    span.with_subscriber(|(id, subscriber)| {
        let span = subscriber.downcast_ref::<Registry>()?.span(id)?;
        span.scope().find_map(|span| {
            span.extensions()
                .get::<CallerContext>()
                .map(|caller| caller.0.clone())
        })
    })
    .flatten()
}

/// Request headers to read a trace context from.
struct Headers<'a>(&'a HeaderMap);

/// Request headers to write a trace context to.
struct HeadersMut<'a>(&'a mut HeaderMap);

// === impl Headers ===

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(HeaderName::as_str).collect()
    }
}

// === impl HeadersMut ===

impl Injector for HeadersMut<'_> {
    fn set(&mut self, key: &str, value: String) {
        let name = HeaderName::from_bytes(key.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(&value)) {
            self.0.insert(name, value);
        }
    }
}
