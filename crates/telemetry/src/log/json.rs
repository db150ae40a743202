//! Log lines as flat JSON objects.
//!
//! A line has `time`, `level`, `target` and `message`, then the fields of the event, then the
//! fields of the enclosing spans (the innermost span takes precedence), then `trace_id` and
//! `span_id` if traces are exported. The objects are flat so that a log search can use the plain
//! field names: `request_id="…"`.

mod fields;

use std::{io::Write, sync::OnceLock};

use opentelemetry::trace::TraceContextExt;
use serde::ser::{SerializeMap, Serializer};
use tracing::{
    Dispatch, Event, Level, Subscriber,
    dispatcher::WeakDispatch,
    span::{Attributes, Id, Record},
};
use tracing_subscriber::{
    Layer,
    fmt::{
        MakeWriter,
        format::Writer,
        time::{FormatTime, SystemTime},
    },
    layer::Context,
    registry::{LookupSpan, SpanRef},
};

use fields::Fields;

/// A layer that writes each event as one line of JSON.
pub(super) struct JsonLines<W> {
    writer: W,
    /// The subscriber that contains this layer; its OpenTelemetry layer provides the trace ids.
    subscriber: OnceLock<WeakDispatch>,
}

// === impl JsonLines ===

impl<W> JsonLines<W> {
    pub(super) fn new(writer: W) -> Self {
        Self {
            writer,
            subscriber: OnceLock::new(),
        }
    }

    fn trace_ids<'a, S: LookupSpan<'a>>(&self, span: &SpanRef<'a, S>) -> Option<(String, String)> {
        let subscriber = self.subscriber.get()?.upgrade()?;
        let context = tracing_opentelemetry::get_otel_context(&span.id(), &subscriber)?;
        let span = context.span();
        let ids = span.span_context();
        ids.is_valid()
            .then(|| (ids.trace_id().to_string(), ids.span_id().to_string()))
    }

    fn line<S>(&self, event: &Event<'_>, context: &Context<'_, S>) -> serde_json::Result<Vec<u8>>
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let message = fields.take_message();

        let mut trace = None;
        if let Some(span) = context.event_span(event) {
            trace = self.trace_ids(&span);
            for span in span.scope() {
                if let Some(outer) = span.extensions().get::<Fields>() {
                    fields.extend(outer);
                }
            }
        }

        let metadata = event.metadata();
        let mut line = Vec::with_capacity(256);
        let mut object = serde_json::Serializer::new(&mut line);
        let mut object = object.serialize_map(None)?;
        object.serialize_entry("time", &now())?;
        object.serialize_entry("level", level_name(*metadata.level()))?;
        object.serialize_entry("target", metadata.target())?;
        object.serialize_entry("message", message.as_deref().unwrap_or(metadata.name()))?;
        for (name, value) in fields.iter() {
            object.serialize_entry(name, value)?;
        }
        if let Some((trace_id, span_id)) = trace {
            object.serialize_entry("trace_id", &trace_id)?;
            object.serialize_entry("span_id", &span_id)?;
        }
        object.end()?;
        line.push(b'\n');
        Ok(line)
    }
}

impl<S, W> Layer<S> for JsonLines<W>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'w> MakeWriter<'w> + 'static,
{
    fn on_register_dispatch(&self, subscriber: &Dispatch) {
        let _ = self.subscriber.set(subscriber.downgrade());
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        values.record(&mut fields);
        if let Some(span) = context.span(id)
            && let Some(existing) = span.extensions_mut().get_mut::<Fields>()
        {
            existing.replace(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        if let Ok(line) = self.line(event, &context) {
            // Each line is written in one call so that lines of several threads do not mix. Errors
            // of standard error cannot be reported anywhere.
            let _ = self
                .writer
                .make_writer_for(event.metadata())
                .write_all(&line);
        }
    }
}

fn now() -> String {
    let mut time = String::with_capacity(32);
    let _ = SystemTime.format_time(&mut Writer::new(&mut time));
    time
}

fn level_name(level: Level) -> &'static str {
    match level {
        Level::ERROR => "error",
        Level::WARN => "warn",
        Level::INFO => "info",
        Level::DEBUG => "debug",
        Level::TRACE => "trace",
    }
}

#[cfg(test)]
mod tests;
