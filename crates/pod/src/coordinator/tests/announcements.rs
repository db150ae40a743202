//! Decisions about announcements: which tokens are accepted.

use runner_pool::PodPhase;

use super::fake_cluster::*;
use crate::{coordinator::AnnouncementOutcome, target::Connect};

#[test]
fn accepts_a_token_once() {
    let mut cluster = FakeCluster::new(Connect::Auto);
    let (create, secret) = cluster.request_pod();
    cluster.accept(&create);
    let (outcome, effects) = cluster.announce(&create, &secret);
    assert_eq!(outcome, AnnouncementOutcome::Accepted);
    assert_eq!(connected_in(&effects), Some(pod_target()));
    assert!(knocks_in(&effects));
    let (outcome, effects) = cluster.announce(&create, &secret);
    assert_eq!(outcome, AnnouncementOutcome::Refused);
    assert!(effects.is_empty(), "{effects:?}");
    let survey = cluster.coordinator.survey(cluster.now);
    assert_eq!(survey.announcements_refused, 1);
}

#[test]
fn accepts_a_token_for_its_pod_only() {
    let mut cluster = FakeCluster::new(Connect::Auto);
    let (create, secret) = cluster.request_pod();
    cluster.accept(&create);
    let mut other = create.clone();
    other.name = "another-pod".into();
    assert_eq!(
        cluster.announce(&other, &secret).0,
        AnnouncementOutcome::Refused
    );
    for wrong in ["", "secret-", "secret-99"] {
        let (outcome, _) = cluster.announce(&create, wrong);
        assert_eq!(outcome, AnnouncementOutcome::Refused, "{wrong}");
    }
    // A wrong token does not use up the right one.
    assert_eq!(
        cluster.announce(&create, &secret).0,
        AnnouncementOutcome::Accepted
    );
}

#[test]
fn keeps_an_early_announcement_until_the_api_server_answers() {
    let mut cluster = FakeCluster::new(Connect::Auto);
    let (create, secret) = cluster.request_pod();
    let (outcome, effects) = cluster.announce(&create, &secret);
    assert_eq!(outcome, AnnouncementOutcome::Accepted);
    assert!(effects.is_empty(), "{effects:?}");
    let created = cluster.accept(&create);
    assert_eq!(connected_in(&created), Some(pod_target()));
    assert!(knocks_in(&created));
}

#[test]
fn an_announcement_after_the_pod_was_found_is_late() {
    let mut cluster = FakeCluster::new(Connect::Auto);
    let (create, secret) = cluster.request_pod();
    cluster.accept(&create);
    cluster.show(&create, PodPhase::Ready);
    let (outcome, effects) = cluster.announce(&create, &secret);
    assert_eq!(outcome, AnnouncementOutcome::Late);
    assert!(!knocks_in(&effects), "{effects:?}");
}

#[test]
fn refuses_the_token_of_a_pod_that_is_gone_or_was_not_created() {
    let mut cluster = FakeCluster::new(Connect::Auto);
    let (create, secret) = cluster.request_pod();
    cluster.accept(&create);
    cluster.gone(&create);
    assert_eq!(
        cluster.announce(&create, &secret).0,
        AnnouncementOutcome::Refused
    );

    let mut cluster = FakeCluster::new(Connect::Auto);
    let (create, secret) = cluster.request_pod();
    let error = runner_core::EvaluationError::new(runner_core::Reason::PodStartFailed, "quota");
    cluster.input(crate::coordinator::Input::Created {
        create: create.clone(),
        result: crate::coordinator::CreateResult::Failed(runner_pool::StartFailure::Refused(error)),
        looked_up: seconds(0),
    });
    assert_eq!(
        cluster.announce(&create, &secret).0,
        AnnouncementOutcome::Refused
    );
}

#[test]
fn knocks_anew_when_a_pod_announces_itself() {
    let mut cluster = FakeCluster::new(Connect::Auto);
    let (create, secret) = cluster.request_pod();
    cluster.accept(&create);
    assert!(knocks_in(&cluster.show(&create, PodPhase::Starting(None))));
    let (outcome, effects) = cluster.announce(&create, &secret);
    assert_eq!(outcome, AnnouncementOutcome::Accepted);
    assert!(
        knocks_in(&effects),
        "without the pause of the earlier knocks"
    );
}
