//! The metric `rpc.server.call.duration` of OpenTelemetry's conventions for gRPC servers.
//!
//! Only frequent unary calls are measured: evaluations and health checks. The duration of streams
//! (watches, reflection) depends on the client and says nothing about the server.

use std::{sync::OnceLock, time::Instant};

use opentelemetry::{KeyValue, global, metrics::Histogram};
use tonic::Code;

/// Names of the gRPC status codes, indexed by code.
const CODE_NAMES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// A call whose duration is recorded when it is dropped.
pub(crate) struct Call {
    method: &'static str,
    started: Instant,
    /// Status code of the response. A call that is dropped without one was cancelled by its caller.
    pub(crate) code: Code,
}

// === impl Call ===

impl Call {
    /// Starts to measure the call of a path; returns none if calls of this method are not measured.
    pub(crate) fn begin(path: &str) -> Option<Self> {
        let method = match path {
            "/evaluator.FunctionEvaluator/EvaluateFunction" => {
                "evaluator.FunctionEvaluator/EvaluateFunction"
            }
            "/grpc.health.v1.Health/Check" => "grpc.health.v1.Health/Check",
            _ => return None,
        };
        Some(Self {
            method,
            started: Instant::now(),
            code: Code::Cancelled,
        })
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let code = CODE_NAMES.get(self.code as usize).unwrap_or(&"UNKNOWN");
        let attributes = [
            KeyValue::new("rpc.system.name", "grpc"),
            KeyValue::new("rpc.method", self.method),
            KeyValue::new("rpc.response.status_code", *code),
        ];
        duration().record(self.started.elapsed().as_secs_f64(), &attributes);
    }
}

fn duration() -> &'static Histogram<f64> {
    static DURATION: OnceLock<Histogram<f64>> = OnceLock::new();
    DURATION.get_or_init(|| {
        global::meter("function-runner")
            .f64_histogram("rpc.server.call.duration")
            .with_unit("s")
            .with_description("Duration of calls of this gRPC server")
            .build()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_name() {
        for (number, name) in (0..).zip(CODE_NAMES) {
            let said = format!("{:?}", Code::from_i32(number));
            let plain = name.replace('_', "");
            assert_eq!(said.to_uppercase(), plain);
        }
    }
}
