use std::time::Duration;

use clap::CommandFactory;

use super::Flags;

fn parse(line: &str) -> Result<Flags, String> {
    let words = std::iter::once("function-runner")
        .chain(line.split_whitespace())
        .map(Into::into);
    Flags::from_words(words).map_err(|error| error.to_string())
}

#[test]
fn passes_the_checks_of_the_parser() {
    Flags::command().debug_assert();
}

#[test]
fn uses_the_defaults_of_existing_installations() {
    let flags = parse("").unwrap();
    assert_eq!(flags.server.port, 9445);
    assert_eq!(flags.server.log_level, 2);
    assert_eq!(flags.server.max_request_body_size, 6_291_456);
    assert_eq!(
        flags.server.default_image_prefix,
        "ghcr.io/kptdev/krm-functions-catalog"
    );
    assert!(flags.pod.warm_up_pod_cache && !flags.registry.enable_private_registries);
    assert_eq!(flags.pod.pod_ttl, Duration::from_secs(1800));
    assert_eq!(
        (
            flags.pod.max_waitlist_length,
            flags.pod.max_parallel_pods_per_function
        ),
        (2, 1)
    );
}

#[test]
fn accepts_every_form_of_a_flag() {
    for line in [
        "-port=1",
        "--port=1",
        "-port 1",
        "--port 1",
        "--port 7 -port=1",
    ] {
        assert_eq!(parse(line).unwrap().server.port, 1, "{line}");
    }
    for (line, value) in [
        ("--warm-up-pod-cache", true),
        ("-warm-up-pod-cache=false", false),
        ("--warm-up-pod-cache=F", false),
        ("--warm-up-pod-cache=1", true),
    ] {
        assert_eq!(parse(line).unwrap().pod.warm_up_pod_cache, value, "{line}");
    }
    assert_eq!(
        parse("-pod-ttl 1h30m").unwrap().pod.pod_ttl,
        Duration::from_secs(5400)
    );
    assert_eq!(
        parse("--scan-interval=500ms").unwrap().pod.scan_interval,
        Duration::from_millis(500)
    );
    assert_eq!(
        parse("--functions /a/-b").unwrap().exec.functions.to_str(),
        Some("/a/-b")
    );
}

#[test]
fn accepts_the_flags_of_existing_deployments() {
    parse(
        "--config=/config.yaml --functions=/home/nonroot/functions --pod-namespace=porch-fn-system \
         --max-request-body-size=6291456 --disable-runtimes=exec --enable-private-registries=true \
         --registry-auth-secret-path=/var/tmp/config-secret/.dockerconfigjson \
         --registry-auth-secret-name=auth-secret --enable-private-registries-tls=true \
         --tls-secret-path=/var/tmp/tls-secret/ --function-pod-template=kpt-function-eval-pod-template \
         --warm-up-pod-cache=true --pod-cache-config=/pod-cache-config/pod-cache-config.yaml",
    )
    .unwrap();
}

#[test]
fn names_invalid_flags() {
    for (line, flag) in [
        ("--no-such-flag", "--no-such-flag"),
        ("-prot=1", "--prot"),
        ("--port=http", "--port"),
        ("--port=70000", "--port"),
        ("--pod-ttl=soon", "--pod-ttl"),
        ("--pod-ttl=5", "--pod-ttl"),
        ("--warm-up-pod-cache=maybe", "--warm-up-pod-cache"),
        ("--warm-up-pod-cache false", "false"),
        ("--log-level=much", "--log-level"),
        ("--max-request-body-size=0", "--max-request-body-size"),
        ("--tls-cert-file=x", "--tls-key-file"),
        ("stray", "stray"),
    ] {
        let error = parse(line).unwrap_err();
        assert!(error.contains(flag), "{line}: {error}");
    }
}

#[test]
fn documents_every_flag_with_its_default() {
    let page = include_str!("../../../../docs/configuration.md");
    for flag in Flags::command().get_arguments() {
        let Some(name) = flag
            .get_long()
            .filter(|name| !["help", "version"].contains(name))
        else {
            continue;
        };
        let cell = format!("`--{name}`");
        let is_its_row = |line: &&str| {
            let flags = line.split('|').nth(1).unwrap_or_default();
            flags.trim_start().starts_with("`--") && flags.contains(&cell)
        };
        let row = page.lines().find(is_its_row);
        let row = row.unwrap_or_else(|| panic!("docs/configuration.md has no row for --{name}"));
        for default in flag
            .get_default_values()
            .iter()
            .filter(|value| !value.is_empty())
        {
            let default = format!("`{}`", default.to_string_lossy());
            assert!(
                row.contains(&default),
                "--{name} defaults to {default}, not as in {row}"
            );
        }
    }
}

#[test]
fn computes_retries_from_both_flags() {
    for (line, retries) in [
        ("", 2),
        ("--max-grpc-retries=5", 5),
        ("--max-grpc-retries=0", 0),
        ("--retry-lost-pods", 2),
        ("--retry-lost-pods=false", 0),
        ("--retry-lost-pods=true --max-grpc-retries=1", 1),
    ] {
        assert_eq!(parse(line).unwrap().pod.retries(), retries, "{line}");
    }
}

#[test]
fn records_a_pod_flag_given_on_the_command_line() {
    let pod_flag = |line: &str| parse(line).unwrap().pod_flag;
    assert_eq!(pod_flag("--port=1 --functions=/f --log-level=3"), None);
    assert_eq!(pod_flag("-pod-ttl=10m").as_deref(), Some("pod-ttl"));
    let registry = pod_flag("--port=1 --enable-private-registries");
    assert_eq!(registry.as_deref(), Some("enable-private-registries"));
}
