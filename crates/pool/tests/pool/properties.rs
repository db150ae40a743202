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

/// A sequence the property found: a batch of extensions that is looked at long after it was noted.
#[test]
fn an_extension_that_is_over_already_is_not_written() {
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
