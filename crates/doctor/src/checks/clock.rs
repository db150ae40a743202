//! Checks that clocks agree.
//!
//! The expiry of an unused pod is stored as a time of day, which every replica reads.

use std::time::{Duration, SystemTime};

use futures::{FutureExt, future::BoxFuture};
use kube::client::Body;

use crate::{
    context::Context,
    outcome::{Outcome, message},
};

/// Skew that is not reported (3 s): the `Date` header has a resolution of 1 s, and the answer takes time.
const TOLERATED_SKEW: Duration = Duration::from_secs(3);
/// Skew (60 s) from which pods are deleted noticeably early or late.
const FAILING_SKEW: Duration = Duration::from_secs(60);

pub(super) fn check(context: &Context) -> BoxFuture<'_, Vec<Outcome>> {
    async { vec![measure(context).await] }.boxed()
}

async fn measure(context: &Context) -> Outcome {
    let request = http::Request::get("/version").body(Body::empty());
    let Ok(request) = request else {
        return Outcome::skipped("the API server cannot be queried");
    };
    let before = SystemTime::now();
    let answer = match context.client.send(request).await {
        Ok(answer) => answer,
        Err(error) => {
            return Outcome::skipped(format!(
                "the API server does not answer: {}",
                message(&error)
            ));
        }
    };
    let took = before.elapsed().unwrap_or_default();
    let date = answer.headers().get(http::header::DATE);
    let date = date.and_then(|date| httpdate::parse_http_date(date.to_str().ok()?).ok());
    match date {
        Some(date) => judge(before + took / 2, date),
        None => Outcome::skipped("the answer of the API server has no Date header"),
    }
}

fn judge(here: SystemTime, there: SystemTime) -> Outcome {
    let (skew, word) = match here.duration_since(there) {
        Ok(skew) => (skew, "behind"),
        Err(error) => (error.duration(), "ahead of"),
    };
    if skew <= TOLERATED_SKEW {
        return Outcome::ok("the API server's clock and this machine's agree");
    }
    let finding = format!(
        "the API server's clock is {}s {word} this machine's",
        skew.as_secs()
    );
    let fix = "synchronise the clocks (chronyc tracking, timedatectl timesync-status) of this \
               machine and of the nodes: pods are kept until a time of day";
    if skew >= FAILING_SKEW {
        Outcome::failed(finding, fix)
    } else {
        Outcome::warning(finding, fix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::State;

    #[test]
    fn grades_skew_by_size_in_both_directions() {
        let here = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let at = |seconds: i64| {
            let distance = Duration::from_secs(seconds.unsigned_abs());
            let there = if seconds < 0 {
                here - distance
            } else {
                here + distance
            };
            let outcome = judge(here, there);
            (outcome.state, outcome.finding)
        };
        assert_eq!(at(1).0, State::Ok);
        assert_eq!(at(-3).0, State::Ok);
        assert_eq!(at(10).0, State::Warning);
        let (state, finding) = at(-300);
        assert_eq!(state, State::Failed);
        assert!(finding.contains("300s behind"), "{finding}");
    }
}
