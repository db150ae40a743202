//! Benchmarks of the table: at most 50 ms to build 10,000 functions, at most 200 ns per lookup.

#![allow(missing_docs, reason = "criterion's macros write public functions")]

use std::{hint::black_box, path::PathBuf};

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use runner_config::{
    Age, Binaries, BinaryDeclaration, Configuration, Declaration, FileOptions, PodDeclaration,
    PodSettings, Source, Table, Wanted,
};
use runner_core::{ImageReference, TagConstraint, TagList};

const FUNCTIONS: usize = 10_000;
const PREFIX: &str = "ghcr.io/default/catalog";

fn options() -> FileOptions {
    FileOptions {
        functions_dir: PathBuf::from("/nonexistent/functions"),
        config: PathBuf::from("/nonexistent/config.yaml"),
        config_wanted: Wanted::Optional,
        pod_cache_config: PathBuf::from("/nonexistent/pod-cache-config.yaml"),
        pod_cache_wanted: Wanted::Optional,
        default_prefix: PREFIX.to_owned(),
        binaries: Binaries::Check,
    }
}

/// Returns declarations, half with existing binaries and half with pods.
///
/// Each has two prefixes and three tags.
fn declarations() -> Vec<Declaration> {
    let tags = ["v0.4.0", "~0.4.1", "v0.5.0"].map(str::to_owned);
    let tags = TagList::parse(&tags, |tag, why| panic!("{tag:?}: {why}"));
    (0..FUNCTIONS)
        .map(|at| Declaration {
            source: Source::Object {
                namespace: "fns".into(),
                name: format!("fn-{at}").into(),
            },
            age: Age {
                created: 0,
                name: format!("fn-{at}"),
            },
            image: format!("fn-{at}"),
            prefixes: vec![
                String::new(),
                "mirror.example.com:5000/functions/".to_owned(),
            ],
            binary: (at % 2 == 0).then(|| BinaryDeclaration {
                path: "/bin/sh".to_owned(),
                tags: tags.clone(),
                standby: true,
            }),
            pod: (at % 2 == 1).then(|| PodDeclaration {
                tags: tags.clone(),
                settings: PodSettings::default(),
            }),
            problems: Vec::new(),
        })
        .collect()
}

fn build(c: &mut Criterion) {
    let declarations = declarations();
    let mut group = c.benchmark_group("table");
    group.sample_size(20);
    group.bench_function("build of 10,000 functions", |b| {
        b.iter_batched(
            || declarations.clone(),
            |declarations| Table::of(&options(), declarations),
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

fn lookup(c: &mut Criterion) {
    let configuration = Configuration::load(options()).expect("there are no files to be wrong");
    configuration.replace_objects(declarations());
    let image = |text: &str| ImageReference::qualified(text, PREFIX).expect("a good image");
    let (binary, pods) = (image("fn-5000:v0.4.2"), image("fn-5001:v0.4.2"));
    let stranger = image("ghcr.io/somebody/else:v1");
    let range = TagConstraint::parse(">= 0.4.0 < 0.5.0").expect("a good constraint");
    let mut group = c.benchmark_group("lookup");
    group.bench_function("binary", |b| {
        b.iter(|| {
            configuration
                .table()
                .executable(black_box(&binary), None)
                .is_some()
        });
    });
    group.bench_function("binary by range", |b| {
        b.iter(|| {
            configuration
                .table()
                .executable(black_box(&binary), Some(&range))
                .is_some()
        });
    });
    group.bench_function("pod settings", |b| {
        b.iter(|| configuration.table().pod_settings(black_box(&pods)));
    });
    group.bench_function("unknown image", |b| {
        b.iter(|| {
            configuration
                .table()
                .executable(black_box(&stranger), None)
                .is_some()
        });
    });
    group.finish();
}

criterion_group!(benches, build, lookup);
criterion_main!(benches);
