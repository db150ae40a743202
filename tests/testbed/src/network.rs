//! The test bed's changes to the machine's network, and their removal.
//!
//! These are two addresses on `lo`, a bridge with a route, and iptables chains.

use std::{
    fs,
    io::Write,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};
use runner_devtools::failure;

use crate::{
    addresses::{ALL, BRIDGE, DNS, NODE, SERVICES},
    progress,
};

/// Prefix of the chains of kube-proxy and the kubelet.
const KUBERNETES_CHAINS: &str = "KUBE-";
/// Name of the test bed's own chain.
const OWN_CHAIN: &str = "KRM-TESTBED";

const TABLES: [&str; 4] = ["filter", "mangle", "nat", "raw"];
const FAMILIES: [&str; 2] = ["iptables", "ip6tables"];

/// Adds the addresses, the bridge, the route of the services and the test bed's chain, unless they
/// exist.
pub fn set_up() -> Result<()> {
    let present = run("ip", &["-oneline", "address", "show", "dev", "lo"])?;
    for address in [NODE, DNS] {
        if !present.contains(&format!(" {address}/32 ")) {
            run(
                "ip",
                &["address", "add", &format!("{address}/32"), "dev", "lo"],
            )?;
        }
    }
    if !fs::exists(format!("/sys/class/net/{BRIDGE}"))? {
        run("ip", &["link", "add", "name", BRIDGE, "type", "bridge"])?;
    }
    run("ip", &["link", "set", BRIDGE, "up"])?;
    // The kernel translates an address only if there is a route to it, and the machine may have no
    // other. Not on `lo`: rejections are not delivered there, and callers would hang.
    run(
        "ip",
        &["route", "replace", SERVICES, "dev", BRIDGE, "src", NODE],
    )?;
    if !saved_rules("iptables", "filter")?.contains(&format!("-j {OWN_CHAIN}")) {
        restore_rules("iptables", &own_rules())?;
    }
    Ok(())
}

/// Returns rules that keep the test bed's addresses on this machine and allow traffic between pods.
///
/// The latter is needed on machines that do not forward. The address of a service that kube-proxy
/// has not yet configured is not translated; packets to it would leave the machine, and another
/// host could answer. They are rejected instead, as kube-proxy rejects a service without endpoints.
fn own_rules() -> String {
    let rules = [
        format!("-d {SERVICES} -j REJECT"),
        format!("-i {BRIDGE} -o {BRIDGE} -j ACCEPT"),
        format!("-i {BRIDGE} -j REJECT"),
        format!("-o {BRIDGE} -j RETURN"),
        "-o lo -j RETURN".to_owned(),
        format!("-d {ALL} -j REJECT"),
    ];
    let mut text = format!("*filter\n:{OWN_CHAIN} - [0:0]\n");
    for rule in rules {
        text.push_str(&format!("-A {OWN_CHAIN} {rule}\n"));
    }
    for chain in ["FORWARD", "OUTPUT"] {
        text.push_str(&format!("-A {chain} -j {OWN_CHAIN}\n"));
    }
    text.push_str("COMMIT\n");
    text
}

/// Fails if another Kubernetes has iptables chains on this machine.
///
/// [`tear_down`] could not distinguish them from the chains of the test bed.
pub fn require_no_other_kubernetes() -> Result<()> {
    for table in TABLES {
        if saved_rules("iptables", table)?.contains(&format!("\n:{KUBERNETES_CHAINS}")) {
            return Err(failure(
                format!(
                    "iptables table {table} has {KUBERNETES_CHAINS}* chains that this test bed did \
                     not create"
                ),
                "stop the other Kubernetes on this machine; if the chains are leftovers, remove \
                 them with `kube-proxy --cleanup`",
            ));
        }
    }
    Ok(())
}

/// Removes everything that [`set_up`], kube-proxy, the kubelet and the pods added.
pub fn tear_down() -> Result<()> {
    for family in FAMILIES {
        for table in TABLES {
            if let Some(rules) = removal_rules(table, &saved_rules(family, table)?) {
                restore_rules(family, &rules)?;
            }
        }
    }
    // The kernel removes the host's end of a pod's veth pair some time after the pod's network
    // namespace; this removes it now.
    let ports = format!("/sys/class/net/{BRIDGE}/brif");
    for port in fs::read_dir(ports).into_iter().flatten().flatten() {
        let name = port.file_name();
        let _ = run("ip", &["link", "delete", &name.to_string_lossy()]);
    }
    if fs::exists(format!("/sys/class/net/{BRIDGE}"))? {
        run("ip", &["link", "delete", BRIDGE])?;
    }
    let present = run("ip", &["-oneline", "address", "show", "dev", "lo"])?;
    for address in [NODE, DNS] {
        if present.contains(&format!(" {address}/32 ")) {
            run(
                "ip",
                &["address", "delete", &format!("{address}/32"), "dev", "lo"],
            )?;
        }
    }
    Ok(())
}

/// Returns the input of `iptables-restore --noflush` that removes the chains and all jumps to them.
fn removal_rules(table: &str, saved: &str) -> Option<String> {
    let ours = |chain: &str| chain.starts_with(KUBERNETES_CHAINS) || chain == OWN_CHAIN;
    let chains: Vec<&str> = saved
        .lines()
        .filter_map(|line| line.strip_prefix(':')?.split_whitespace().next())
        .filter(|chain| ours(chain))
        .collect();
    if chains.is_empty() {
        return None;
    }
    let mut rules = format!("*{table}\n");
    for line in saved.lines() {
        let mut words = line.split_whitespace();
        if words.next() != Some("-A") || words.next().is_none_or(ours) {
            continue;
        }
        let target = words
            .skip_while(|word| !matches!(*word, "-j" | "-g"))
            .nth(1);
        if target.is_some_and(ours) {
            rules.push_str(&line.replacen("-A", "-D", 1));
            rules.push('\n');
        }
    }
    // All chains are emptied first, because a chain that another one jumps to cannot be removed.
    for chain in &chains {
        rules.push_str(&format!("-F {chain}\n"));
    }
    for chain in &chains {
        rules.push_str(&format!("-X {chain}\n"));
    }
    rules.push_str("COMMIT\n");
    Some(rules)
}

/// Returns the rules of a table, or an empty string if the kernel has no such table.
fn saved_rules(family: &str, table: &str) -> Result<String> {
    let output = Command::new(format!("{family}-save"))
        .args(["-t", table])
        .output()
        .with_context(|| format!("cannot run {family}-save"))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Applies rules with `iptables-restore --noflush`.
fn restore_rules(family: &str, rules: &str) -> Result<()> {
    let mut child = Command::new(format!("{family}-restore"))
        .args(["--noflush", "--wait"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot run {family}-restore"))?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(rules.as_bytes())?;
    }
    let status = child.wait()?;
    if !status.success() {
        progress(&format!("rules given to {family}-restore:\n{rules}"));
        bail!("{family}-restore failed on the rules above: {status}");
    }
    Ok(())
}

/// Runs a command, requires success and returns its standard output.
pub fn run(program: &str, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {program}"))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("{program} {}: {}", arguments.join(" "), stderr.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removes_only_own_chains_and_jumps_to_them() {
        let saved = "\
*nat
:PREROUTING ACCEPT [0:0]
:DOCKER - [0:0]
:KUBE-SERVICES - [0:0]
:KUBE-MARK-MASQ - [0:0]
-A PREROUTING -m comment --comment \"kubernetes service portals\" -j KUBE-SERVICES
-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER
-A KUBE-SERVICES -j KUBE-MARK-MASQ
COMMIT
";
        let expected = "\
*nat
-D PREROUTING -m comment --comment \"kubernetes service portals\" -j KUBE-SERVICES
-F KUBE-SERVICES
-F KUBE-MARK-MASQ
-X KUBE-SERVICES
-X KUBE-MARK-MASQ
COMMIT
";
        assert_eq!(removal_rules("nat", saved).as_deref(), Some(expected));
    }

    #[test]
    fn keeps_a_table_without_own_chains() {
        assert_eq!(
            removal_rules("nat", "*nat\n:DOCKER - [0:0]\n-A INPUT -j DOCKER\nCOMMIT\n"),
            None
        );
    }
}
