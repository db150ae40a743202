//! Refuses evaluations whose configuration cannot be known yet.

use std::time::{Duration, Instant};

use runner_config::Configuration;
use runner_core::{EvaluationError, Function, Reason};

/// Delay after which a refused caller is asked to retry (1 s).
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Waits until the configuration of a function is known.
///
/// # Errors
/// `KUBERNETES_UNREACHABLE` while the API server has not answered since the start: a FunctionConfig
/// object may configure the function differently.
pub(crate) async fn configuration_of(
    function: &Function,
    configuration: &Configuration,
    deadline: Option<Instant>,
) -> Result<(), EvaluationError> {
    if configuration.completes_by(deadline).await {
        return Ok(());
    }
    let image = function.image.to_string();
    let error = EvaluationError::new(
        Reason::KubernetesUnreachable,
        format!(
            "function {image:?} cannot be evaluated yet: the Kubernetes API server has not answered \
             since this function runner started, so the FunctionConfig objects are not known"
        ),
    );
    Err(error.with("image", image).retry_in(RETRY_DELAY))
}
