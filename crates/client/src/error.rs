//! Errors of a client: invalid options, and failed calls.

use std::{error::Error, time::Duration};

use runner_core::{EvaluationError, causes, innermost};
use tonic::{Code, ConnectError, Status, TimeoutExpired};

/// A reason why a client cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum OptionsError {
    /// The address is not a valid authority of a URI.
    #[error("{address:?} is not HOST:PORT")]
    Address {
        /// The address as it was given.
        address: String,
        /// The error of the URI parser.
        source: GrpcError,
    },
    /// The address has no port.
    #[error("{address:?} is not HOST:PORT: the port is missing")]
    NoPort {
        /// The address as it was given.
        address: String,
    },
    /// The address has a scheme that contradicts the TLS settings.
    #[error("{address:?} does not fit the TLS settings: they require {expected}, not {given}")]
    Scheme {
        /// The address as it was given.
        address: String,
        /// The scheme in the address.
        given: String,
        /// The scheme that follows from the TLS settings.
        expected: &'static str,
    },
    /// A certificate or key is invalid.
    #[error("invalid TLS certificates or key")]
    Tls(#[source] GrpcError),
}

/// An error of the gRPC library.
///
/// Its text is the innermost cause, because the errors above it name only layers of the library.
#[derive(Debug, thiserror::Error)]
pub enum GrpcError {
    /// A call ended with this status; without a cause, the text is the message of the server.
    #[error("{}", cause(.0))]
    Status(Status),
    /// The client cannot be set up.
    #[error("{}", innermost(.0))]
    Transport(tonic::transport::Error),
}

/// A failed call.
///
/// The variants before [`Evaluation`](Self::Evaluation) are failures of the connection or of the
/// message sizes; their source has the status that the gRPC library returned.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The request is larger than the message limit and was not sent.
    #[error("the resource list is too large to send: {size} bytes, the limit is {limit}")]
    RequestTooLarge {
        /// Size of the encoded request in bytes.
        size: usize,
        /// The client's message limit in bytes.
        limit: usize,
    },
    /// A message is larger than a limit of this client or of the server.
    #[error("a message is over the limit")]
    MessageTooLarge(#[source] GrpcError),
    /// No connection could be established.
    #[error("cannot reach a function runner at {address}")]
    Unreachable {
        /// The server's address.
        address: String,
        /// The status of the call.
        source: GrpcError,
    },
    /// The connection was lost during the call, or a proxy reports that.
    #[error("the connection to the runner at {address} was lost")]
    Lost {
        /// The server's address.
        address: String,
        /// The status of the call.
        source: GrpcError,
    },
    /// The server answers, but not with gRPC.
    #[error("the server at {address} does not speak gRPC")]
    NotGrpc {
        /// The server's address.
        address: String,
        /// The status of the call.
        source: GrpcError,
    },
    /// The server speaks gRPC and does not offer the service.
    #[error("the server at {address} does not offer the service {service}")]
    NotOffered {
        /// The server's address.
        address: String,
        /// Full name of the service.
        service: &'static str,
        /// The status of the call.
        source: GrpcError,
    },
    /// The time limit of the call has passed, and the server reported no reason.
    #[error("the runner at {address} did not answer within {timeout:?}")]
    Timeout {
        /// The server's address.
        address: String,
        /// The time limit of the call.
        timeout: Duration,
        /// The status of the call.
        source: GrpcError,
    },
    /// The runner reports an error, with reason, message, metadata and retry delay.
    #[error(transparent)]
    Evaluation(#[from] EvaluationError),
}

/// The call that a status belongs to.
pub(crate) struct Call<'a> {
    pub(crate) address: &'a str,
    pub(crate) service: &'static str,
    pub(crate) timeout: Duration,
}

// === impl GrpcError ===

impl From<Status> for GrpcError {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}

impl From<tonic::transport::Error> for GrpcError {
    fn from(error: tonic::transport::Error) -> Self {
        Self::Transport(error)
    }
}

// === impl CallError ===

impl CallError {
    /// Returns whether no function runner answered: the call may succeed later, or elsewhere.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. } | Self::Lost { .. } | Self::NotGrpc { .. }
        )
    }

    /// Returns the error that a status means.
    pub(crate) fn of(source: Status, call: &Call<'_>) -> Self {
        if runner_proto::status::has_reason(&source) {
            return Self::Evaluation(runner_proto::status::decode(&source));
        }
        let address = call.address.to_owned();
        // Statuses with a source were created by the gRPC library of this client.
        let is_local = source.source().is_some();
        match source.code() {
            _ if has_cause::<ConnectError>(&source) => Self::Unreachable {
                address,
                source: source.into(),
            },
            // The library ends a call with `Cancelled` at its time limit.
            Code::Cancelled if has_cause::<TimeoutExpired>(&source) => call.timed_out(source),
            Code::DeadlineExceeded => call.timed_out(source),
            Code::OutOfRange | Code::ResourceExhausted => Self::MessageTooLarge(source.into()),
            Code::Unimplemented => Self::NotOffered {
                address,
                service: call.service,
                source: source.into(),
            },
            Code::Unknown | Code::Internal if is_local => Self::NotGrpc {
                address,
                source: source.into(),
            },
            code if code == Code::Unavailable || is_local => Self::Lost {
                address,
                source: source.into(),
            },
            code => {
                let error = runner_proto::status::decode(&source);
                Self::Evaluation(match error.message().trim() {
                    "" => error.worded(format!("the runner at {address} returned {code:?}")),
                    _ => error,
                })
            }
        }
    }
}

// === impl Call ===

impl Call<'_> {
    fn timed_out(&self, source: Status) -> CallError {
        CallError::Timeout {
            address: self.address.to_owned(),
            timeout: self.timeout,
            source: source.into(),
        }
    }
}

fn has_cause<E: Error + 'static>(status: &Status) -> bool {
    causes(status).any(|error| error.is::<E>())
}

/// Returns the innermost cause of a status, or its message if a server sent it.
fn cause(status: &Status) -> String {
    match status.source() {
        Some(source) => innermost(source),
        None => status.message().to_owned(),
    }
}
