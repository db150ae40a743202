use std::sync::atomic::AtomicUsize;

use tokio::sync::{Barrier, Notify};

use super::*;

const HOUR: Duration = Duration::from_secs(3600);
const TIMEOUT: Duration = Duration::from_secs(10);

fn lookups(ttl: Duration, failure_ttl: Duration) -> LookupCache<u32, u32> {
    LookupCache::new(100, ttl, failure_ttl, Metrics::new())
}

fn image() -> ImageReference {
    "ghcr.io/x/fn:v1".parse().unwrap()
}

fn failure() -> RegistryError {
    RegistryError::NoEntrypoint {
        image: "x".to_owned(),
    }
}

fn unreachable() -> RegistryError {
    RegistryError::Unreachable {
        image: "x".to_owned(),
        registry: "y".to_owned(),
        cause: "gone".to_owned(),
        retry_after: None,
    }
}

/// Repeats the lookup until the result is as expected: background checks are not visible otherwise.
async fn wait_for_result(
    lookups: &LookupCache<u32, u32>,
    expected: Result<u32, RegistryError>,
    load: impl Fn() -> Result<u32, RegistryError>,
) {
    let image = image();
    let wait = async {
        loop {
            let loaded = load();
            let wait = Wait::new(&image, None);
            if lookups.get(&1, false, wait, |_| async { loaded }).await == expected {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TIMEOUT, wait)
        .await
        .expect("the answer never changed");
}

#[tokio::test]
async fn shares_one_lookup_among_concurrent_callers() {
    let lookups = Arc::new(lookups(HOUR, HOUR));
    let (calls, start) = (Arc::new(AtomicUsize::new(0)), Arc::new(Barrier::new(100)));
    let callers: Vec<_> = (0..100)
        .map(|_| {
            let (lookups, calls, start) =
                (Arc::clone(&lookups), Arc::clone(&calls), Arc::clone(&start));
            tokio::spawn(async move {
                let image = image();
                start.wait().await;
                let load = |_| async move {
                    calls.fetch_add(1, Ordering::SeqCst);
                    tokio::task::yield_now().await;
                    Ok(7)
                };
                lookups.get(&1, false, Wait::new(&image, None), load).await
            })
        })
        .collect();
    for caller in callers {
        assert_eq!(caller.await.unwrap(), Ok(7));
    }
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn continues_a_lookup_when_its_caller_stops_waiting() {
    let lookups = lookups(HOUR, HOUR);
    let (image, release) = (image(), Arc::new(Notify::new()));
    let held = Arc::clone(&release);
    let load = |_| async move {
        held.notified().await;
        Ok(7)
    };
    let soon = Instant::now() + Duration::from_millis(20);
    let error = lookups
        .get(&1, false, Wait::new(&image, Some(soon)), load)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), "deadline_exceeded");
    release.notify_one();
    let second = lookups.get(&1, false, Wait::new(&image, None), |_| async {
        panic!("the lookup was repeated")
    });
    assert_eq!(tokio::time::timeout(TIMEOUT, second).await.unwrap(), Ok(7));
}

#[tokio::test]
async fn caches_a_failure_for_a_short_time_only() {
    let lookups = lookups(HOUR, Duration::from_millis(50));
    let image = image();
    let load = |_| async { Err(failure()) };
    let first = lookups.get(&1, false, Wait::new(&image, None), load).await;
    assert_eq!(first, Err(failure()));
    let second = lookups
        .get(&1, false, Wait::new(&image, None), |_| async { Ok(7) })
        .await;
    assert_eq!(second, Err(failure()));
    wait_for_result(&lookups, Ok(7), || Ok(7)).await;
}

#[tokio::test]
async fn returns_a_stale_result_and_checks_it_in_the_background() {
    let lookups = lookups(Duration::ZERO, HOUR);
    let image = image();
    let first = lookups
        .get(&1, false, Wait::new(&image, None), |_| async { Ok(1) })
        .await;
    assert_eq!(first, Ok(1));
    let check = |known| async move {
        assert_eq!(known, Some(1));
        Ok(2)
    };
    let second = lookups.get(&1, false, Wait::new(&image, None), check).await;
    assert_eq!(second, Ok(1), "the caller does not wait for the check");
    wait_for_result(&lookups, Ok(2), || Ok(2)).await;
}

#[tokio::test]
async fn never_checks_a_fixed_result() {
    let lookups = lookups(Duration::ZERO, HOUR);
    let image = image();
    let load = |known: Option<u32>| {
        assert_eq!(known, None);
        async { Ok(1) }
    };
    for _ in 0..3 {
        assert_eq!(
            lookups.get(&1, true, Wait::new(&image, None), load).await,
            Ok(1)
        );
    }
}

#[tokio::test]
async fn keeps_a_result_while_the_registry_is_unreachable() {
    let lookups = lookups(Duration::from_millis(1), HOUR);
    wait_for_result(&lookups, Ok(1), || Ok(1)).await;
    let checks = AtomicUsize::new(0);
    let image = image();
    let wait = async {
        while checks.load(Ordering::SeqCst) < 3 {
            let load = |_| {
                checks.fetch_add(1, Ordering::SeqCst);
                async { Err(unreachable()) }
            };
            let answer = lookups.get(&1, false, Wait::new(&image, None), load).await;
            assert_eq!(answer, Ok(1));
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TIMEOUT, wait)
        .await
        .expect("it was not checked again");
}

#[tokio::test]
async fn drops_a_result_on_a_permanent_error() {
    let lookups = lookups(Duration::ZERO, HOUR);
    wait_for_result(&lookups, Ok(1), || Ok(1)).await;
    wait_for_result(&lookups, Err(failure()), || Err(failure())).await;
}
