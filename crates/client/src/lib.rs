//! A client of the function runner with one reusable connection.
//!
//! A [`Client`] connects on its first call, sends all further calls over the same HTTP/2
//! connection, and connects again if that connection is lost. Its methods are asynchronous and run
//! on the caller's tokio runtime; the crate prints nothing and reads no files.
//!
//! ```
//! use std::{sync::Arc, time::Duration};
//!
//! use bytes::Bytes;
//! use runner_client::{CallError, Client, EvaluateFunctionRequest, Options};
//! use runner_core::{Evaluation, EvaluationError, EvaluationFuture, Evaluator, Output, Reason};
//! use runner_service::{Lifecycle, ListenAt, Server, ServerOptions};
//!
//! /// A runner with one function, which returns its input.
//! struct Echo;
//!
//! impl Evaluator for Echo {
//!     fn evaluate(&self, evaluation: Evaluation) -> EvaluationFuture<'_> {
//!         Box::pin(async move {
//!             if evaluation.image != "echo:v1" {
//!                 return Err(EvaluationError::not_found("no such function"));
//!             }
//!             let resource_list = evaluation.resource_list;
//!             Ok(Output { resource_list, ..Output::default() })
//!         })
//!     }
//! }
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let options = ServerOptions { message_limit: 1 << 20, ..ServerOptions::default() };
//! let at = ListenAt { address: Some([127, 0, 0, 1].into()), port: 0 };
//! let server = Server::bind(at, Arc::new(Echo), Lifecycle::default(), options).await?;
//! let address = server.address()?.to_string();
//! tokio::spawn(server.serve());
//!
//! let client = Client::new(&address, &Options::default())?;
//! let timeout = Duration::from_secs(10);
//! let request = |image: &str| EvaluateFunctionRequest {
//!     image: image.to_owned(),
//!     resource_list: Bytes::from("kind: ResourceList\n"),
//!     ..EvaluateFunctionRequest::default()
//! };
//! let response = client.evaluate(request("echo:v1"), timeout).await?;
//! assert_eq!(response.resource_list, "kind: ResourceList\n");
//!
//! let error = client.evaluate(request("other:v1"), timeout).await;
//! let Err(CallError::Evaluation(error)) = error else { panic!("{error:?}") };
//! assert_eq!(error.reason(), Reason::FunctionNotFound);
//! assert_eq!(error.message(), "no such function");
//! # Ok(())
//! # }
//! ```

mod client;
mod error;
mod options;

pub use client::Client;
pub use error::{CallError, GrpcError, OptionsError};
pub use options::{Options, Tls};
pub use runner_proto::{
    evaluator::{EvaluateFunctionRequest, EvaluateFunctionResponse},
    health::health_check_response::ServingStatus,
    runner_status::GetStatusResponse,
};
