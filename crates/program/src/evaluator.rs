//! Evaluates functions by running local programs and interpreting how they end.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use runner_core::{
    Evaluation, EvaluationError, Output, Reason,
    text::{excerpt, shorten},
};
use runner_process::{Completed, Engine, Program, RunError, StartError};
use runner_proto::wire::field_length;

use crate::{Wording, outcome};

/// Largest number of bytes of a function's standard error in an error message (32 KiB).
///
/// The message is also logged. A gRPC status may carry less of it.
pub(crate) const EXCERPT: usize = 32 << 10;

/// Size of an output in bytes from which it is parsed on a blocking thread (512 KiB).
const LONG_OUTPUT: usize = 512 << 10;

/// Delay after which a caller is asked to retry when the queue is full (1 s).
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// An evaluator of local programs.
#[derive(Clone)]
pub struct ProgramEvaluator {
    engine: Engine,
    wording: Wording,
    runtime: &'static str,
    time_limit: Duration,
    message_limit: usize,
}

// === impl ProgramEvaluator ===

impl ProgramEvaluator {
    /// Returns an evaluator that runs programs with this engine.
    ///
    /// `time_limit` applies to evaluations without a deadline. An output that does not fit into a
    /// message of `message_limit` bytes is an error.
    #[must_use]
    pub fn new(
        engine: Engine,
        wording: Wording,
        runtime: &'static str,
        time_limit: Duration,
        message_limit: usize,
    ) -> Self {
        Self {
            engine,
            wording,
            runtime,
            time_limit,
            message_limit,
        }
    }

    /// Runs a program over the resource list of an evaluation. Messages call the function `image`.
    pub async fn evaluate(
        &self,
        program: &Arc<Program>,
        image: &str,
        evaluation: &mut Evaluation,
    ) -> Result<Output, EvaluationError> {
        let input = std::mem::take(&mut evaluation.resource_list);
        let deadline = evaluation
            .deadline
            .unwrap_or_else(|| Instant::now() + self.time_limit);
        let answer = match self.engine.run(program, input, deadline).await {
            Ok(completed) => {
                let judged = self.judge(image, completed).await;
                judged.and_then(|completed| self.fit(image, completed))
            }
            Err(error) => Err(self.run_error(image, evaluation, &error)),
        };
        match answer {
            Ok((resource_list, log)) => Ok(Output {
                resource_list,
                log,
                runtime: self.runtime,
            }),
            Err(error) => Err(error.with("image", image).with("evaluator", self.runtime)),
        }
    }

    /// Fits output and log into one message by shortening the log.
    fn fit(&self, image: &str, completed: Completed) -> Result<(Bytes, Bytes), EvaluationError> {
        let Completed { stdout, stderr, .. } = completed;
        match self.message_limit.checked_sub(field_length(stdout.len())) {
            Some(room) => Ok((stdout, fit_log(stderr, room))),
            None => Err(self.too_large(image, &format!("{} bytes", stdout.len()))),
        }
    }

    fn too_large(&self, image: &str, wrote: &str) -> EvaluationError {
        let limit = self.message_limit;
        EvaluationError::new(
            Reason::MessageTooLarge,
            format!(
                "the output of function {image:?} is too large: it wrote {wrote} where a message \
                 has at most {limit} bytes (raise --max-request-body-size here and in the client)"
            ),
        )
        .with("limit", limit.to_string())
    }

    async fn judge(&self, image: &str, completed: Completed) -> Result<Completed, EvaluationError> {
        let wording = self.wording;
        if completed.stdout.len() < LONG_OUTPUT {
            return outcome::check(wording, image, &completed).map(|()| completed);
        }
        // Usually takes 1 ms, but hundreds for an unusual layout, which must not delay other tasks.
        let image = image.to_owned();
        tokio::task::spawn_blocking(move || {
            outcome::check(wording, &image, &completed).map(|()| completed)
        })
        .await
        .unwrap_or_else(|error| Err(EvaluationError::new(Reason::Internal, error.to_string())))
    }

    /// Returns the error of a program that could not be started.
    #[must_use]
    pub fn start_error(image: &str, error: &StartError) -> EvaluationError {
        EvaluationError::new(
            Reason::FunctionFailed,
            format!("Failed to execute function {image:?}: {error} ()"),
        )
        .with("explanation", error.explanation())
    }

    fn run_error(&self, image: &str, evaluation: &Evaluation, error: &RunError) -> EvaluationError {
        match error {
            RunError::QueueFull { waiting } => EvaluationError::new(
                Reason::QueueFull,
                format!("cannot run function {image:?} now: {waiting} evaluations wait already"),
            )
            .retry_in(RETRY_AFTER),
            RunError::OutputTooLarge { limit } => {
                self.too_large(image, &format!("more than {limit} bytes"))
            }
            RunError::DeadlineExceeded {
                queued,
                running,
                stderr,
            } => {
                let whose = match evaluation.deadline {
                    Some(_) => "the caller's deadline".to_owned(),
                    None => format!(
                        "the time limit of {:?} (--function-timeout)",
                        self.time_limit
                    ),
                };
                let said = match excerpt(stderr.trim_ascii(), EXCERPT) {
                    empty if empty.is_empty() => empty,
                    text => format!("; stderr: {text}"),
                };
                EvaluationError::new(
                    Reason::DeadlineExceeded,
                    format!(
                        "function {image:?} did not finish before {whose}: queued {queued:.1?}, \
                         running {running:.1?}{said}"
                    ),
                )
                .with("queued_ms", queued.as_millis().to_string())
                .with("running_ms", running.as_millis().to_string())
            }
            RunError::Start(error) => Self::start_error(image, error),
            RunError::System(error) => EvaluationError::new(
                Reason::Internal,
                format!("Failed to execute function {image:?}: {error}"),
            ),
        }
    }
}

/// Shortens a log to the space that its output left in a message, by cutting out its middle.
fn fit_log(log: Bytes, room: usize) -> Bytes {
    let longest = (0..=room.min(log.len())).rev();
    // The encoded length takes a few bytes, too.
    match longest.take(8).find(|length| field_length(*length) <= room) {
        Some(length) => shorten(log, length),
        None => Bytes::new(),
    }
}

#[cfg(test)]
mod tests {
    use runner_proto::evaluator::EvaluateFunctionResponse;

    use super::*;

    #[test]
    fn keeps_a_log_that_fits_beside_its_output() {
        for (list, log) in [(0, 1), (1, 0), (100, 127), (100, 128), (70_000, 20_000)] {
            let message = EvaluateFunctionResponse {
                resource_list: Bytes::from(vec![b'l'; list]),
                log: Bytes::from(vec![b'e'; log]),
            };
            let limit = prost::Message::encoded_len(&message);
            assert_eq!(limit, field_length(list) + field_length(log));
            let room = limit - field_length(list);
            assert_eq!(fit_log(message.log.clone(), room), message.log);
            let shorter = fit_log(message.log, room.saturating_sub(1));
            assert!(
                field_length(shorter.len()) < room.max(1),
                "{list} and {log}"
            );
        }
    }
}
