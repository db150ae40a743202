//! Checks that texts quoted in the documentation are texts that the programs print.
//!
//! A quoted text is a code span of docs/*.md or README.md that looks like a message (see
//! [`quotes`]); `…` and words such as `IMAGE` match anything. It must be part of a string in the
//! source, in which a placeholder matches anything, or part of the output of a program that fails
//! to start or of a function that fails.
//!
//! The requirement, the architecture, the decision records and CONTRIBUTING.md name tests and other
//! items as `FILE.rs::NAME`; every one of them must exist.

mod literals;
mod pattern;
mod quotes;

use std::{fs, net::TcpListener, path::PathBuf};

use runner_core::{EvaluationError, Reason};
use runner_proto::status;
use runner_test_support::{Request, error_of};

use tonic::Code;

use crate::support::{Runner, Setup};
use literals::literals;
use pattern::Pattern;
use quotes::{Quote, quotes};

/// Texts of Kubernetes and of libraries, which do not occur in our sources.
const FOREIGN: [&str; 3] = [
    "violates PodSecurity",
    "container has runAsNonRoot and image will run as root",
    "invalid peer certificate: UnknownIssuer",
];

fn repository() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Returns the output of the runner for each reason not to start.
fn refusals() -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let config = |text: &str| {
        fs::write(path("config.yaml"), text).unwrap();
        format!("--config={}", path("config.yaml"))
    };
    let refusal = |environment: &[(&str, &str)], flags: &[&str]| {
        let defaults = ["--port=0", "--listen-address=127.0.0.1"];
        Runner::refuses_in(environment, &[&defaults, flags].concat()).stderr
    };
    let alone = |flags: &[&str]| refusal(&[], &[&["--disable-runtimes=pod"], flags].concat());
    let taken = TcpListener::bind("[::]:0").unwrap();
    let port = format!("--port={}", taken.local_addr().unwrap().port());
    let nowhere = [
        ("WRAPPER_SERVER_IMAGE", "example.com/wrapper:v1"),
        ("KUBECONFIG", ""),
        ("KUBERNETES_SERVICE_HOST", ""),
        ("HOME", "/nonexistent"),
    ];
    let listed = "functions:\n- function: cat\n  images: [example.com/fn/cat:v1]\n";
    let malformed = "functions:\n- function: cat\n  images: [example.com/BAD:v1]\n";
    vec![
        alone(&["--no-such-flag"]),
        Runner::refuses_in(&[], &["--disable-runtimes=pod", &port]).stderr,
        alone(&[&format!("--config={}", path("missing.yaml"))]),
        alone(&[&config(malformed)]),
        alone(&[&config(listed), "--functions=/no/such/directory"]),
        refusal(&[], &["--pod-namespace=porch-fn-system"]),
        refusal(&nowhere, &["--pod-namespace=porch-fn-system"]),
        alone(&[
            "--tls-cert-file=/no/such/file",
            "--tls-key-file=/no/such/file",
        ]),
    ]
}

/// Returns the error messages of failing functions.
async fn failures() -> Vec<String> {
    let setup = Setup::with("fails", "cat >/dev/null; echo why >&2; exit 1");
    let missing = setup.path("functions").join("missing");
    let runner = setup.start().await;
    let client = runner.client().await;
    let failing = client.call("fails").await;
    let unknown = client
        .send(Request::of("unknown").exec_path(&missing))
        .await;
    [failing, unknown]
        .map(|answer| error_of(answer, Code::Internal).message().to_owned())
        .to_vec()
}

#[tokio::test(flavor = "multi_thread")]
async fn quotes_only_texts_that_the_programs_print() {
    let mut printed: Vec<Pattern> = literals(&repository())
        .iter()
        .map(|literal| Pattern::of_format_string(literal))
        .collect();
    printed.extend(refusals().iter().map(|text| Pattern::of_text(text)));
    printed.extend(failures().await.iter().map(|text| Pattern::of_text(text)));
    let quotes = quotes(&repository());
    assert!(quotes.len() > 20, "the documentation was found");
    let wrong: Vec<&Quote> = quotes
        .iter()
        .filter(|quote| {
            let foreign = FOREIGN.iter().any(|text| quote.text.contains(text));
            let pattern = Pattern::of_quote(&quote.text);
            !foreign && !printed.iter().any(|text| pattern.is_part_of(text))
        })
        .collect();
    assert!(wrong.is_empty(), "nothing prints these: {wrong:#?}");
}

#[test]
fn documents_exactly_the_printed_start_failures() {
    let documented: Vec<Pattern> = quotes(&repository())
        .iter()
        .filter(|quote| quote.section == "The runner does not start")
        .map(|quote| Pattern::of_quote(&quote.text))
        .collect();
    let refusals = refusals();
    let printed: Vec<Pattern> = refusals.iter().map(|text| Pattern::of_text(text)).collect();
    for (text, pattern) in refusals.iter().zip(&printed) {
        assert!(
            documented.iter().any(|quote| quote.is_part_of(pattern)),
            "not documented: {text}"
        );
    }
    for quote in documented {
        assert!(
            printed.iter().any(|text| quote.is_part_of(text)),
            "never printed: {quote:?}"
        );
    }
}

#[test]
fn documents_every_reason_with_its_code() {
    let text = fs::read_to_string(repository().join("docs/troubleshooting.md")).unwrap();
    for reason in Reason::ALL {
        let code = status::encode(&EvaluationError::new(reason, "")).code();
        let row = text
            .lines()
            .find_map(|line| line.strip_prefix(&format!("| `{reason}` | ")));
        let documented = row.and_then(|row| row.split(' ').next());
        let documented = documented.map(|code| code.replace('_', ""));
        let expected = format!("{code:?}").to_uppercase();
        assert_eq!(documented, Some(expected), "{reason}");
    }
}

/// Returns the names that a document gives as `FILE.rs::NAME`.
fn named_items(document: &str) -> Vec<(&str, &str)> {
    let is_name = |name: &str| name.chars().all(|it| it.is_alphanumeric() || it == '_');
    let spans = document.split('`').filter_map(|it| it.split_once(".rs::"));
    spans.filter(|(_, name)| is_name(name)).collect()
}

/// Returns whether a source file defines a name.
fn defines(source: &str, name: &str) -> bool {
    let kinds = [
        "fn", "struct", "enum", "trait", "const", "static", "type", "mod",
    ];
    let is_end = |it: char| !it.is_alphanumeric() && it != '_';
    kinds.iter().any(|kind| {
        let definition = format!("{kind} {name}");
        let mut found = source.match_indices(&definition);
        found.any(|(at, _)| source[at + definition.len()..].starts_with(is_end))
    })
}

#[test]
fn names_only_existing_items_in_the_documents() {
    let mut documents = ["requirement.md", "ARCHITECTURE.md", "../CONTRIBUTING.md"]
        .map(|name| repository().join("docs").join(name))
        .to_vec();
    let records = fs::read_dir(repository().join("docs/adr")).unwrap();
    documents.extend(records.map(|record| record.unwrap().path()));
    let mut count = 0;
    for document in documents {
        let text = fs::read_to_string(&document).unwrap();
        for (file, name) in named_items(&text) {
            let source = fs::read_to_string(repository().join(format!("{file}.rs")));
            let source = source.unwrap_or_else(|error| panic!("{file}.rs: {error}"));
            let document = document.display();
            assert!(defines(&source, name), "{document}: {file}.rs::{name}");
            count += 1;
        }
    }
    assert!(count > 150, "items are named as FILE.rs::NAME: {count}");
}
