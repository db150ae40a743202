//! The Debian packages the test bed runs on, told by a file each of them brings.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Result, bail};

use crate::progress;

/// A package, and files of which any one shows that its contents are there.
struct Package {
    name: &'static str,
    witnesses: &'static [&'static str],
}

const PACKAGES: &[Package] = &[
    Package {
        name: "busybox-static",
        witnesses: &["/bin/busybox", "/usr/bin/busybox"],
    },
    Package {
        name: "ca-certificates",
        witnesses: &["/etc/ssl/certs/ca-certificates.crt"],
    },
    Package {
        name: "conntrack",
        witnesses: &["/usr/sbin/conntrack"],
    },
    Package {
        name: "containernetworking-plugins",
        witnesses: &["/usr/lib/cni/bridge"],
    },
    Package {
        name: "docker-registry",
        witnesses: &["/usr/bin/docker-registry"],
    },
    Package {
        name: "etcd-server",
        witnesses: &["/usr/bin/etcd"],
    },
    Package {
        name: "gcc",
        witnesses: &["/usr/bin/gcc"],
    },
    Package {
        name: "iproute2",
        witnesses: &["/usr/sbin/ip", "/sbin/ip", "/bin/ip"],
    },
    Package {
        name: "iptables",
        witnesses: &["/usr/sbin/iptables", "/sbin/iptables"],
    },
    Package {
        name: "libc6-dev",
        witnesses: &[
            "/usr/lib/x86_64-linux-gnu/libc.a",
            "/usr/lib/aarch64-linux-gnu/libc.a",
        ],
    },
    Package {
        name: "runc",
        witnesses: &["/usr/sbin/runc", "/usr/bin/runc"],
    },
];

/// Installs what is missing; says what that is when it may not.
pub fn install() -> Result<()> {
    let missing = missing();
    if missing.is_empty() {
        progress("every package is installed");
        return Ok(());
    }
    let list = missing.join(" ");
    if !rustix::process::geteuid().is_root() {
        bail!("missing packages: {list}\nas root: apt-get install --no-install-recommends {list}");
    }
    progress(&format!("installing {list}"));
    apt_get(&["update", "-qq"])?;
    let mut arguments = vec!["install", "-y", "-qq", "--no-install-recommends"];
    arguments.extend(&missing);
    apt_get(&arguments)?;
    require()
}

/// Fails with the list of packages that are not there.
pub fn require() -> Result<()> {
    let missing = missing();
    if missing.is_empty() {
        return Ok(());
    }
    bail!(
        "missing packages: {}\n`testbed install` as root installs them",
        missing.join(" ")
    );
}

fn missing() -> Vec<&'static str> {
    PACKAGES
        .iter()
        .filter(|package| {
            !package
                .witnesses
                .iter()
                .any(|path| Path::new(path).exists())
        })
        .map(|package| package.name)
        .collect()
}

fn apt_get(arguments: &[&str]) -> Result<()> {
    let status = Command::new("apt-get")
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .status()?;
    if !status.success() {
        bail!("apt-get {}: {status}", arguments.join(" "));
    }
    Ok(())
}
