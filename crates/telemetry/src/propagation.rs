//! Carries a trace from the caller's headers to those of the calls made on its behalf.
//!
//! Where this process exports no spans of its own, a caller's trace passes through unchanged, so
//! one silent process in the middle does not cut a trace in two.

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

/// Makes the trace in a request's headers, if there is one, the parent of the span that handles
/// the request. Call it before the span has children or is injected anywhere.
pub fn parent_of(span: &Span, headers: &HeaderMap) {
    let parent = global::get_text_map_propagator(|propagator| {
        propagator.extract_with_context(&Context::new(), &Headers(headers))
    });
    let says_nothing = !parent.span().span_context().is_valid() && parent.baggage().is_empty();
    if !says_nothing && span.set_parent(parent.clone()).is_err() {
        carry(span, parent);
    }
}

/// Writes the span's trace into the headers of a request made within it.
pub fn inject(span: &Span, headers: &mut HeaderMap) {
    let own = span.context();
    let context = if own.span().span_context().is_valid() {
        Some(own)
    } else {
        carried(span)
    };
    if let Some(context) = context {
        global::get_text_map_propagator(|propagator| {
            propagator.inject_context(&context, &mut HeadersMut(headers));
        });
    }
}

/// Sets how traces are carried; with no propagator they are not.
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

/// Returns a caller's span by its ids in hexadecimal form, or none if they are malformed or zero.
#[cfg(feature = "propagators")]
fn remote(trace: &str, span: &str, sampled: bool) -> Option<opentelemetry::trace::SpanContext> {
    use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};
    let trace = TraceId::from_hex(trace).ok()?;
    let span = SpanId::from_hex(span).ok()?;
    let flags = TraceFlags::default().with_sampled(sampled);
    let ids = SpanContext::new(trace, span, flags, true, TraceState::default());
    ids.is_valid().then_some(ids)
}

/// A caller's trace, kept with a span that is not exported itself.
struct Carried(Context);

fn carry(span: &Span, context: Context) {
    span.with_subscriber(|(id, subscriber)| {
        if let Some(span) = subscriber
            .downcast_ref::<Registry>()
            .and_then(|all| all.span(id))
        {
            span.extensions_mut().replace(Carried(context));
        }
    });
}

fn carried(span: &Span) -> Option<Context> {
    span.with_subscriber(|(id, subscriber)| {
        let span = subscriber.downcast_ref::<Registry>()?.span(id)?;
        span.scope().find_map(|span| {
            span.extensions()
                .get::<Carried>()
                .map(|carried| carried.0.clone())
        })
    })
    .flatten()
}

struct Headers<'a>(&'a HeaderMap);

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
