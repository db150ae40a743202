//! Runs Debian's `docker-registry` as a child process of the test.

use std::{
    fmt::Write as _,
    fs,
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    sync::mpsc,
    time::Duration,
};

use tempfile::TempDir;

use super::{TokenServer, USER};
use crate::Authority;

const PROGRAM: &str = "docker-registry";
const START_LIMIT: Duration = Duration::from_secs(20);
const LISTENING: &str = "listening on 127.0.0.1:";

/// The credentials that the registry asks for.
#[derive(Clone, Copy)]
pub enum Protection<'a> {
    /// No credentials.
    None,
    /// The name and password of [`USER`].
    Password,
    /// A token issued by this token server.
    Token(&'a TokenServer),
}

/// A running registry.
///
/// The content survives a restart of the process and is removed with this value.
pub struct DockerRegistry {
    directory: TempDir,
    port: u16,
    process: Option<Child>,
}

// === impl DockerRegistry ===

impl DockerRegistry {
    /// Starts a registry without authentication and without TLS.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with(Protection::None, None)
    }

    /// Starts a registry with the given authentication, and with TLS if there is an authority.
    #[must_use]
    pub fn start_with(protection: Protection<'_>, tls: Option<&Authority>) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut config = String::from("version: 0.1\nlog: {level: info}\n");
        let path = directory.path().display();
        let _ = writeln!(
            config,
            "storage: {{filesystem: {{rootdirectory: {path}/data}}, delete: {{enabled: true}}}}"
        );
        match protection {
            Protection::None => {}
            Protection::Password => {
                // The lowest cost that bcrypt allows, because every request of every test pays it.
                let hash = bcrypt::hash(USER.1, 4).expect("a hash");
                fs::write(
                    directory.path().join("htpasswd"),
                    format!("{}:{hash}\n", USER.0),
                )
                .expect("a writable directory");
                let _ = writeln!(
                    config,
                    "auth: {{htpasswd: {{realm: test, path: {path}/htpasswd}}}}"
                );
            }
            Protection::Token(server) => {
                fs::write(directory.path().join("tokens.crt"), server.certificate())
                    .expect("a writable directory");
                let _ = writeln!(
                    config,
                    "auth: {{token: {{realm: \"{}\", service: {}, issuer: {}, rootcertbundle: {path}/tokens.crt}}}}",
                    server.realm(),
                    TokenServer::SERVICE,
                    TokenServer::ISSUER,
                );
            }
        }
        config.push_str("http:\n  addr: 127.0.0.1:PORT\n");
        if let Some(authority) = tls {
            let issued = authority.server();
            for (name, pem) in [
                ("server.crt", issued.certificate),
                ("server.key", issued.key),
            ] {
                fs::write(directory.path().join(name), pem).expect("a writable directory");
            }
            let _ = writeln!(
                config,
                "  tls: {{certificate: {path}/server.crt, key: {path}/server.key}}"
            );
        }
        fs::write(directory.path().join("config.template"), config).expect("a writable directory");
        let mut registry = Self {
            directory,
            port: 0,
            process: None,
        };
        registry.restart();
        registry
    }

    /// Returns host and port, as image references contain them.
    #[must_use]
    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Kills the process.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// Starts the process again on the same port and with the same content.
    pub fn restart(&mut self) {
        self.kill();
        let directory = self.directory.path();
        let template = fs::read_to_string(directory.join("config.template")).expect("the template");
        let config = directory.join("config.yml");
        fs::write(&config, template.replace("PORT", &self.port.to_string()))
            .expect("a writable directory");
        let mut process = Command::new(PROGRAM)
            .arg("serve")
            .arg(&config)
            .env("OTEL_TRACES_EXPORTER", "none")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| {
                panic!("cannot start {PROGRAM}, of Debian's package docker-registry: {error}")
            });
        let (announce, announced) = mpsc::channel();
        let output = process.stdout.take().expect("a piped output");
        let errors = process.stderr.take().expect("a piped output");
        watch(output, announce.clone());
        watch(errors, announce);
        self.process = Some(process);
        let mut log = String::new();
        // Ends when both pipes are closed or after the time limit; the log then shows the reason.
        while let Ok(line) = announced.recv_timeout(START_LIMIT) {
            if let Some((_, port)) = line.split_once(LISTENING) {
                let digits: String = port.chars().take_while(char::is_ascii_digit).collect();
                self.port = digits.parse().expect("a port");
                return;
            }
            log.push_str(&line);
            log.push('\n');
        }
        panic!("{PROGRAM} does not listen:\n{log}");
    }
}

impl Drop for DockerRegistry {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Sends every line of the output to the channel.
///
/// Reading continues after the receiver is gone, because a full pipe would block the process.
fn watch(output: impl std::io::Read + Send + 'static, announce: mpsc::Sender<String>) {
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            let _ = announce.send(line);
        }
    });
}
