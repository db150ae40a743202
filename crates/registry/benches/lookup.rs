//! Cost of a cached lookup, which must stay below 1 µs because every evaluation makes one.

use std::{hint::black_box, time::Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use runner_core::{ImageReference, TagConstraint};
use runner_image::Flavour;
use runner_registry::{Keychain, Options, Registry};
use runner_test_support::registry::{DockerRegistry, index, push};
use tokio::runtime::Runtime;

fn lookup(criterion: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let server = DockerRegistry::start();
    let options = Options {
        platform: "linux/amd64".parse().expect("a platform"),
        keychain: Keychain::empty(),
        ..Options::default()
    };
    let image: ImageReference = format!("{}/team/fn:v1.2.3", server.host())
        .parse()
        .expect("an image");
    let caret = TagConstraint::parse("^1").expect("a constraint");
    let registry = runtime.block_on(async {
        let registry = Registry::new(options).expect("a registry");
        push(&registry, &image, &index(Flavour::Oci)).await;
        registry
            .inspect(&image, Some(&caret), None)
            .await
            .expect("the image");
        registry
    });
    let mut ask = |name: &str, tag: Option<&TagConstraint>| {
        criterion.bench_function(name, |bencher| {
            // Measured inside one task, like a request: entering the runtime costs as much as the
            // lookup.
            bencher.iter_custom(|rounds| {
                runtime.block_on(async {
                    let start = Instant::now();
                    for _ in 0..rounds {
                        black_box(registry.inspect(&image, tag, None).await).expect("the image");
                    }
                    start.elapsed()
                })
            });
        });
    };
    ask("warm lookup by tag", None);
    ask("warm lookup by constraint", Some(&caret));
}

criterion_group!(benches, lookup);
criterion_main!(benches);
