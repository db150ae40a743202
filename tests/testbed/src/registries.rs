//! Configures the open registry (loopback, no TLS) and the private one (password, TLS, own CA).

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use base64::Engine;
use serde_json::json;

use crate::{
    configuration::{private_registry, registry_hosts},
    layout::{self, Layout},
    settings::Settings,
};

/// File name of the docker config with the private registry's login.
pub const DOCKER_CONFIG: &str = "docker-config.json";

/// The private registry, with everything that a client needs to use it.
#[derive(Clone, Debug)]
pub struct PrivateRegistry {
    /// Host and port, as image references contain them.
    pub host: String,
    /// Path of the CA certificate that signed the registry's certificate.
    pub ca: PathBuf,
    /// User that may pull and push.
    pub user: String,
    /// Password of that user until a test changes it.
    pub password: String,
    /// Path of a docker config with that login.
    pub docker_config: PathBuf,
}

/// Writes the configuration of the registries, and containerd's configuration for them.
pub fn write_configuration(layout: &Layout, settings: &Settings) -> Result<()> {
    let config = |name: &str| layout.in_run("config").join(name);
    let certs = layout.in_run("certs");

    let open = format!("localhost:{}", settings.registry_port);
    layout::write(
        &config("open-registry.json"),
        json!({
            "version": "0.1",
            "log": {"level": "warn", "accesslog": {"disabled": true}},
            "storage": storage(layout, "open"),
            "http": {"addr": format!("127.0.0.1:{}", settings.registry_port)},
        })
        .to_string(),
    )?;
    write_hosts_file(
        layout,
        &open,
        &format!("http://127.0.0.1:{}", settings.registry_port),
        None,
    )?;

    let users = config("htpasswd");
    layout::write(
        &config("private-registry.json"),
        json!({
            "version": "0.1",
            "log": {"level": "warn", "accesslog": {"disabled": true}},
            "storage": storage(layout, "private"),
            "auth": {"htpasswd": {"realm": "testbed", "path": users}},
            "http": {
                "addr": private_registry(),
                "tls": {
                    "certificate": certs.join("registry.crt"),
                    "key": certs.join("registry.key"),
                },
            },
        })
        .to_string(),
    )?;
    if !users.exists() {
        set_password(layout, &settings.registry_user, &settings.registry_password)?;
    }
    let host = private_registry();
    let (user, password) = (&settings.registry_user, &settings.registry_password);
    let login = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
    let logins = json!({"auths": {&host: {"auth": login}}});
    layout::write(&config(DOCKER_CONFIG), logins.to_string())?;
    write_hosts_file(
        layout,
        &host,
        &format!("https://{host}"),
        Some(&certs.join("registry-ca.crt")),
    )
}

/// Writes the `hosts.toml` by which containerd finds a registry.
pub fn write_hosts_file(
    layout: &Layout,
    host: &str,
    endpoint: &str,
    ca: Option<&Path>,
) -> Result<()> {
    let directory = layout.in_run("registries").join(host);
    layout::make_dir(&directory)?;
    layout::write(&directory.join("hosts.toml"), registry_hosts(endpoint, ca))
}

/// Makes this the only password of the private registry, from the next request on.
///
/// The registry checks the file's modification time at every login.
pub fn set_password(layout: &Layout, user: &str, password: &str) -> Result<()> {
    // The lowest cost that bcrypt allows, because the registry computes the hash for every pull.
    let hash = bcrypt::hash(password, 4).context("cannot hash a password")?;
    layout::write(
        &layout.in_run("config").join("htpasswd"),
        format!("{user}:{hash}\n"),
    )
}

fn storage(layout: &Layout, name: &str) -> serde_json::Value {
    let directory = layout.in_run("registry-data").join(name);
    json!({"filesystem": {"rootdirectory": directory}, "delete": {"enabled": true}})
}
