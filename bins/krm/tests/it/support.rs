//! The command, run to its end.

use std::{net::SocketAddr, process::Command};

use runner_test_support::{FakeRunner, Run, run};

/// Runs the command, without colours.
pub fn krm(arguments: &[&str], input: &str) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_krm"));
    command
        .args(arguments)
        .env_remove("CLICOLOR_FORCE")
        .env("COLUMNS", "100");
    run(&mut command, input)
}

/// Runs `krm eval` against a runner.
pub fn eval(runner: &FakeRunner, arguments: &[&str]) -> Run {
    eval_with_input(runner, arguments, "")
}

/// Runs `krm eval` against a runner, with a standard input.
pub fn eval_with_input(runner: &FakeRunner, arguments: &[&str], input: &str) -> Run {
    eval_at(runner.address(), arguments, input)
}

/// Runs `krm eval` against an address, with a standard input.
pub fn eval_at(address: SocketAddr, arguments: &[&str], input: &str) -> Run {
    let address = address.to_string();
    let image = [
        "eval",
        "--image",
        "example.com/fn:v1",
        "--address",
        &address,
    ];
    krm(&[&image, arguments].concat(), input)
}

/// A resource as people write them, with comments, a blank line and YAML 1.1 scalars.
pub const DEPLOYMENT: &str = "\
# Serves the shop's pages.
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web # do not rename
  labels: {app: web}
spec:
  replicas: 3   # for the weekend

  paused: no
  template:
    spec:
      containers:
        - name: nginx
          image: 'nginx:1.27'
      volumes:
        - name: scripts
          configMap:
            defaultMode: 0755
";
pub const SERVICES: &str = "\
apiVersion: v1
kind: Service
metadata:
  name: one
---
# The second.
apiVersion: v1
kind: Service
metadata: {name: two}
";
