//! The processes of the test bed: their names, command lines and readiness.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    os::unix::net::UnixStream,
    path::PathBuf,
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::Result;

use crate::{
    addresses::{API_PORT, DNS, NODE, NODE_NAME, PODS, SERVICES},
    configuration::private_registry,
    layout::Layout,
    programs::Programs,
    settings::Settings,
};

/// One process of the test bed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Component {
    /// The store of the API server.
    Etcd,
    /// The registry without a password.
    OpenRegistry,
    /// The registry with a password and TLS.
    PrivateRegistry,
    /// The container runtime.
    Containerd,
    /// The API server.
    ApiServer,
    /// The controllers, such as those of endpoints and service accounts.
    ControllerManager,
    /// The scheduler.
    Scheduler,
    /// The kubelet of the only node.
    Kubelet,
    /// kube-proxy, which implements services with iptables.
    Proxy,
    /// CoreDNS, which resolves the names of services.
    Dns,
}

/// The values that a component's command line and readiness depend on.
#[derive(Clone, Copy)]
pub(crate) struct ComponentContext<'a> {
    pub(crate) layout: &'a Layout,
    pub(crate) settings: &'a Settings,
    pub(crate) programs: &'a Programs,
}

/// Time limit for one connection or response of a readiness check.
const CHECK_TIMEOUT: Duration = Duration::from_secs(1);
const KUBELET_PORT: u16 = 10250;
const PROXY_HEALTH_PORT: u16 = 10256;

// === impl Component ===

impl Component {
    /// Components without dependencies; the API server needs etcd.
    pub(crate) const INDEPENDENT: [Self; 4] = [
        Self::Etcd,
        Self::OpenRegistry,
        Self::PrivateRegistry,
        Self::Containerd,
    ];

    /// Components that need the API server.
    pub(crate) const CLIENTS: [Self; 5] = [
        Self::ControllerManager,
        Self::Scheduler,
        Self::Kubelet,
        Self::Proxy,
        Self::Dns,
    ];

    /// Returns every component, each after those it needs.
    pub fn all() -> impl Iterator<Item = Self> {
        let own = Self::INDEPENDENT.into_iter();
        own.chain([Self::ApiServer]).chain(Self::CLIENTS)
    }

    /// Returns the name of the component, of its log and of its process record.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::OpenRegistry => "open-registry",
            Self::PrivateRegistry => "private-registry",
            Self::Containerd => "containerd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
            Self::Proxy => "kube-proxy",
            Self::Dns => "coredns",
            Self::Kubelet => "kubelet",
        }
    }

    /// Returns the program and its arguments.
    pub(crate) fn command(self, context: ComponentContext<'_>) -> Result<(PathBuf, Vec<String>)> {
        let program = match self {
            Self::Etcd => PathBuf::from("/usr/bin/etcd"),
            Self::OpenRegistry | Self::PrivateRegistry => PathBuf::from("/usr/bin/docker-registry"),
            Self::Containerd => context.programs.path("containerd")?,
            Self::Dns => context.programs.path("coredns")?,
            _ => context.programs.path("kube")?,
        };
        let arguments = match self {
            Self::Etcd => self.etcd(context),
            Self::OpenRegistry | Self::PrivateRegistry => {
                vec![
                    "serve".to_owned(),
                    context.config(&format!("{}.json", self.name())),
                ]
            }
            Self::Containerd => vec!["--config".to_owned(), context.config("containerd.toml")],
            Self::Dns => vec!["-conf".to_owned(), context.config("Corefile")],
            Self::ApiServer => self.apiserver(context),
            Self::ControllerManager => self.controller_manager(context),
            Self::Scheduler => self.client(context, &["--leader-elect=false", "--secure-port=0"]),
            Self::Proxy => self.proxy(context),
            Self::Kubelet => self.kubelet(context),
        };
        Ok((program, arguments))
    }

    /// Returns whether the component is ready.
    pub(crate) fn is_ready(self, context: ComponentContext<'_>) -> bool {
        let loopback = Ipv4Addr::LOCALHOST.to_string();
        match self {
            Self::Etcd => accepts_connections(&loopback, context.settings.etcd_port),
            Self::OpenRegistry => accepts_connections(&loopback, context.settings.registry_port),
            Self::PrivateRegistry => private_registry()
                .parse()
                .is_ok_and(|address| TcpStream::connect_timeout(&address, CHECK_TIMEOUT).is_ok()),
            Self::Containerd => {
                UnixStream::connect(context.layout.in_run("containerd.sock")).is_ok()
            }
            Self::ApiServer => {
                accepts_connections(NODE, API_PORT)
                    && context.kubectl_succeeds(&["get", "--raw", "/readyz"])
            }
            Self::Proxy => answers_ok(NODE, PROXY_HEALTH_PORT, "/livez"),
            Self::Dns => answers_ok(DNS, 8181, "/ready"),
            Self::Kubelet => {
                // The taint for a node that is not ready is removed a moment after the node is
                // ready.
                let state = r#"{.status.conditions[?(@.type=="Ready")].status}{.spec.taints}"#;
                let state = format!("--output=jsonpath={state}");
                accepts_connections(NODE, KUBELET_PORT)
                    && context.kubectl_output(&["get", "node", NODE_NAME, &state]) == "True"
            }
            // Not checked here: without them no node becomes ready and no service account appears.
            Self::ControllerManager | Self::Scheduler => true,
        }
    }

    fn etcd(self, context: ComponentContext<'_>) -> Vec<String> {
        let client = format!("http://127.0.0.1:{}", context.settings.etcd_port);
        let peer = format!("http://127.0.0.1:{}", context.settings.etcd_peer_port);
        vec![
            format!("--data-dir={}", context.layout.in_run("etcd").display()),
            // The data need not survive a power failure.
            "--unsafe-no-fsync".to_owned(),
            "--log-level=warn".to_owned(),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=default={peer}"),
        ]
    }

    fn apiserver(self, context: ComponentContext<'_>) -> Vec<String> {
        let cert = |name: &str| context.cert(name);
        vec![
            self.name().to_owned(),
            format!(
                "--etcd-servers=http://127.0.0.1:{}",
                context.settings.etcd_port
            ),
            format!("--bind-address={NODE}"),
            format!("--advertise-address={NODE}"),
            format!("--secure-port={API_PORT}"),
            format!("--tls-cert-file={}", cert("apiserver.crt")),
            format!("--tls-private-key-file={}", cert("apiserver.key")),
            format!("--token-auth-file={}", context.config("tokens.csv")),
            "--authorization-mode=RBAC".to_owned(),
            format!("--service-cluster-ip-range={SERVICES}"),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-account-key-file={}", cert("accounts.pub")),
            format!(
                "--service-account-signing-key-file={}",
                cert("accounts.key")
            ),
            "--allow-privileged".to_owned(),
            "--kubelet-preferred-address-types=InternalIP".to_owned(),
            "--feature-gates=ImageVolume=true".to_owned(),
        ]
    }

    fn controller_manager(self, context: ComponentContext<'_>) -> Vec<String> {
        let key = format!(
            "--service-account-private-key-file={}",
            context.cert("accounts.key")
        );
        let ca = format!("--root-ca-file={}", context.cert("ca.crt"));
        self.client(
            context,
            &["--leader-elect=false", "--secure-port=0", &key, &ca],
        )
    }

    fn proxy(self, context: ComponentContext<'_>) -> Vec<String> {
        self.client(
            context,
            &[
                &format!("--hostname-override={NODE_NAME}"),
                &format!("--cluster-cidr={PODS}"),
                "--proxy-mode=iptables",
                // Pods share a bridge: without this, responses of a service bypass the address
                // translation, and the caller does not recognise their sender.
                "--masquerade-all",
                "--iptables-localhost-nodeports=false",
                "--nodeport-addresses=primary",
                // Zero keeps the machine's own limits.
                "--conntrack-max-per-core=0",
                "--conntrack-tcp-timeout-established=0s",
                "--conntrack-tcp-timeout-close-wait=0s",
                "--oom-score-adj=0",
                &format!("--healthz-bind-address={NODE}:{PROXY_HEALTH_PORT}"),
                &format!("--metrics-bind-address={NODE}:10249"),
            ],
        )
    }

    fn kubelet(self, context: ComponentContext<'_>) -> Vec<String> {
        let root = context.layout.in_run("kubelet");
        self.client(
            context,
            &[
                &format!("--config={}", context.config("kubelet.json")),
                &format!("--root-dir={}", root.display()),
                &format!("--cert-dir={}", root.join("pki").display()),
                &format!("--hostname-override={NODE_NAME}"),
                &format!("--node-ip={NODE}"),
            ],
        )
    }

    fn client(self, context: ComponentContext<'_>, flags: &[&str]) -> Vec<String> {
        let kubeconfig = context.layout.in_run("kubeconfig");
        let own = [
            self.name().to_owned(),
            format!("--kubeconfig={}", kubeconfig.display()),
        ];
        own.into_iter()
            .chain(flags.iter().map(|&flag| flag.to_owned()))
            .collect()
    }
}

// === impl ComponentContext ===

impl ComponentContext<'_> {
    fn config(&self, name: &str) -> String {
        self.layout
            .in_run("config")
            .join(name)
            .display()
            .to_string()
    }

    fn cert(&self, name: &str) -> String {
        self.layout.in_run("certs").join(name).display().to_string()
    }

    /// Sets the node's condition `Ready` to `Unknown`, if the node exists.
    ///
    /// Otherwise the report of the previous kubelet would count for the next one.
    pub(crate) fn mark_node_unknown(&self) {
        let unknown = r#"{"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}"#;
        let _ = self.run_kubectl(&[
            "patch",
            "node",
            NODE_NAME,
            "--subresource=status",
            "--patch",
            unknown,
        ]);
    }

    /// Returns whether kubectl succeeds with these arguments.
    pub(crate) fn kubectl_succeeds(&self, arguments: &[&str]) -> bool {
        self.run_kubectl(arguments).is_some()
    }

    /// Returns the output of kubectl, or an empty string if it fails.
    fn kubectl_output(&self, arguments: &[&str]) -> String {
        let printed = self.run_kubectl(arguments).unwrap_or_default();
        String::from_utf8_lossy(&printed).into_owned()
    }

    fn run_kubectl(&self, arguments: &[&str]) -> Option<Vec<u8>> {
        let output = Command::new(self.programs.path("kube").ok()?)
            .arg("kubectl")
            .args(arguments)
            .env("KUBECONFIG", self.layout.in_run("kubeconfig"))
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
            .ok()?;
        output.status.success().then_some(output.stdout)
    }
}

/// Makes a TCP connection within [`CHECK_TIMEOUT`].
fn connect(host: &str, port: u16) -> Option<TcpStream> {
    let address = SocketAddr::new(host.parse().ok()?, port);
    TcpStream::connect_timeout(&address, CHECK_TIMEOUT).ok()
}

/// Returns whether a TCP connection can be made.
fn accepts_connections(host: &str, port: u16) -> bool {
    connect(host, port).is_some()
}

/// Returns whether a GET request to this path is answered with status 200.
fn answers_ok(host: &str, port: u16, path: &str) -> bool {
    let has_status_200 = || {
        let mut stream = connect(host, port)?;
        stream.set_read_timeout(Some(CHECK_TIMEOUT)).ok()?;
        write!(stream, "GET {path} HTTP/1.0\r\n\r\n").ok()?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok()?;
        let status = answer.split(|byte| *byte == b' ').nth(1)?;
        Some(status == b"200")
    };
    has_status_200().unwrap_or(false)
}
