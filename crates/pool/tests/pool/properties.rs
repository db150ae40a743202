//! Invariants that hold whatever happens in whatever order.

mod chaos;

use proptest::{collection::vec, prelude::*, test_runner::Config};

use chaos::Chaos;

/// `PROPTEST_CASES` asks for more or fewer.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok())
        .unwrap_or(100_000)
}

proptest! {
    #![proptest_config(Config { cases: cases(), failure_persistence: None, ..Config::default() })]

    /// Each number is one event, chosen among those that make sense at the time, so that every
    /// sequence is worth running and shrinks to a short one.
    #[test]
    fn invariants_hold_over_random_events(events in vec(any::<u32>(), 1..40)) {
        let mut chaos = Chaos::new();
        for event in events {
            chaos.happen(event);
        }
        chaos.calm_down();
    }
}
