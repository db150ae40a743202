//! A program on this machine as an evaluation: run it, and say what its end means.

mod verdict;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use runner_core::{Evaluation, EvaluationError, Output, Reason};
use runner_process::{Engine, Program, RunError, excerpt};

pub use verdict::Wording;

/// How much of a function's standard error goes into a message. A message travels in HTTP/2
/// headers, twice; the whole log is in ours.
pub(crate) const EXCERPT: usize = 32 << 10;

/// What a response needs besides the function's output.
const RESPONSE_OVERHEAD: usize = 64;

/// A client told to come back later should not come back at once.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Runs programs and interprets their ends.
#[derive(Clone)]
pub struct Local {
    engine: Engine,
    wording: Wording,
    evaluator: &'static str,
    time_limit: Duration,
    message_limit: usize,
}

// === impl Local ===

impl Local {
    /// For evaluations without a deadline, `time_limit` is theirs. An output that does not fit into
    /// a message of `message_limit` bytes is an error.
    #[must_use]
    pub fn new(
        engine: Engine,
        wording: Wording,
        evaluator: &'static str,
        time_limit: Duration,
        message_limit: usize,
    ) -> Self {
        Self {
            engine,
            wording,
            evaluator,
            time_limit,
            message_limit,
        }
    }

    /// Runs a program over the evaluation's list. `image` is what messages call the function.
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
        let ended = self.engine.run(program, input, deadline).await;
        let answer = match ended {
            Ok(completed) => verdict::of(self.wording, image, &completed)
                .map(|()| (completed.stdout, completed.stderr)),
            Err(error) => Err(self.run_error(image, evaluation, &error)),
        };
        match answer {
            Ok((resource_list, log)) => {
                let room = self
                    .message_limit
                    .saturating_sub(RESPONSE_OVERHEAD + resource_list.len());
                Ok(Output {
                    resource_list,
                    log: fitting(log, room),
                    evaluator: self.evaluator,
                })
            }
            Err(error) => Err(error.with("image", image).with("evaluator", self.evaluator)),
        }
    }

    fn run_error(&self, image: &str, evaluation: &Evaluation, error: &RunError) -> EvaluationError {
        match error {
            RunError::QueueFull { waiting } => EvaluationError::new(
                Reason::QueueFull,
                format!("cannot run function {image:?} now: {waiting} evaluations wait already"),
            )
            .retry_in(RETRY_AFTER),
            RunError::OutputTooLarge { .. } => EvaluationError::new(
                Reason::MessageTooLarge,
                format!(
                    "function {image:?} wrote more than {0} bytes, the message limit of {0} bytes \
                     (raise --max-request-body-size here and in the client)",
                    self.message_limit
                ),
            )
            .with("limit", self.message_limit.to_string()),
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
                let said = match excerpt(stderr, EXCERPT) {
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
            RunError::Start(error) => EvaluationError::new(
                Reason::FunctionFailed,
                format!("Failed to execute function {image:?}: {error}"),
            ),
            RunError::System(error) => EvaluationError::new(
                Reason::Internal,
                format!("Failed to execute function {image:?}: {error}"),
            ),
        }
    }
}

/// A log that fits beside its output; what is too long loses its middle.
fn fitting(log: Bytes, room: usize) -> Bytes {
    if log.len() <= room {
        return log;
    }
    // The mark of the cut needs some of the room.
    let text = excerpt(&log, room.saturating_sub(RESPONSE_OVERHEAD));
    if text.len() <= room {
        Bytes::from(text)
    } else {
        Bytes::new()
    }
}
