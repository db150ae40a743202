//! Invariants that hold for every sequence of events.

mod chaos;

use proptest::{collection::vec, prelude::*, test_runner::Config};

use chaos::Chaos;

/// Returns the number of cases: `PROPTEST_CASES`, or 100,000.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok())
        .unwrap_or(100_000)
}

proptest! {
    #![proptest_config(Config { cases: cases(), failure_persistence: None, ..Config::default() })]

    /// Each number selects one event among those possible at the time, so that every sequence is
    /// useful and shrinks to a short one.
    #[test]
    fn invariants_hold_over_random_events(events in vec(any::<u32>(), 1..40)) {
        let mut chaos = Chaos::new();
        for event in events {
            chaos.happen(event);
        }
        chaos.calm_down();
    }
}

/// Replays a sequence that the property test found: a batch of extensions is handled long after it
/// was recorded.
#[test]
fn does_not_write_an_extension_that_is_in_the_past() {
    let mut chaos = Chaos::new();
    for event in [
        1_245_290_128,
        3_089_099_968,
        3_374_761_435,
        3_239_422_299,
        1_839_837_952,
        1_590_129_850,
        3_285_075_152,
        1_582_647_098,
        120_565_754,
        3_448_364_538,
        2_168_982_480,
        506_599_418,
    ] {
        chaos.happen(event);
    }
    chaos.calm_down();
}
