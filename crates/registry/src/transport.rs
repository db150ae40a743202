//! HTTP clients with current trust, proxies from the environment, and restricted redirects.

use std::{
    error::Error as StdError,
    io,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use reqwest::{Client, redirect};
use runner_core::causes;
use rustls::ClientConfig;

use crate::{
    endpoint::Endpoints,
    metrics::Metrics,
    trust::{self, CustomCa},
};

const USER_AGENT: &str = concat!("krm-function-runner/", env!("CARGO_PKG_VERSION"));
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of idle connections per host.
const IDLE_CONNECTIONS: usize = 4;
const MAX_REDIRECTS: usize = 5;
const PREVIOUS_TRUST: &str = "the certificates that were trusted before stay trusted";

/// The reason why no client can be created.
#[derive(Debug, thiserror::Error)]
pub enum SetUpError {
    /// TLS cannot be set up.
    #[error("cannot set up TLS for registries")]
    Tls(#[from] rustls::Error),
    /// The HTTP client cannot be set up.
    #[error("cannot set up the HTTP client for registries")]
    Http(#[from] reqwest::Error),
}

/// A source of clients that trust the current custom CA.
pub(crate) struct Transport {
    ca: Option<PathBuf>,
    endpoints: Arc<Endpoints>,
    metrics: Metrics,
    current: Mutex<Current>,
}

/// The custom CA as last read, and the clients that trust it.
struct Current {
    custom: Result<Option<CustomCa>, String>,
    clients: Clients,
}

#[derive(Clone)]
struct Clients {
    /// Uses the proxies that the environment configures.
    proxied: Client,
    /// Used for loopback: a proxy would connect to its own loopback.
    direct: Client,
}

// === impl Transport ===

impl Transport {
    pub(crate) fn new(
        ca: Option<PathBuf>,
        endpoints: Arc<Endpoints>,
        metrics: Metrics,
    ) -> Result<Self, SetUpError> {
        let custom = read_ca(ca.as_ref());
        if let Err(problem) = &custom {
            report_unusable_ca(problem, "only the system's roots are trusted", &metrics);
        }
        let clients = Clients::new(custom.as_ref().ok().and_then(Option::as_ref), &endpoints)?;
        let current = Mutex::new(Current { custom, clients });
        Ok(Self {
            ca,
            endpoints,
            metrics,
            current,
        })
    }

    /// Returns the client for a host on this machine, or for other hosts.
    pub(crate) fn client(&self, loopback: bool) -> Client {
        let clients = self.clients();
        if loopback {
            clients.direct
        } else {
            clients.proxied
        }
    }

    /// Returns the clients, created anew if the custom CA has changed.
    ///
    /// Mounted secrets change at any time, so the file is read on each call, which costs nothing
    /// compared with a network request.
    fn clients(&self) -> Clients {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if self.ca.is_none() {
            return current.clients.clone();
        }
        let custom = read_ca(self.ca.as_ref());
        if custom != current.custom {
            match &custom {
                Ok(ca) => match Clients::new(ca.as_ref(), &self.endpoints) {
                    Ok(clients) => {
                        tracing::info!("the custom CA for registries has changed");
                        current.clients = clients;
                    }
                    Err(error) => {
                        report_unusable_ca(&error.to_string(), PREVIOUS_TRUST, &self.metrics);
                    }
                },
                Err(problem) => report_unusable_ca(problem, PREVIOUS_TRUST, &self.metrics),
            }
            current.custom = custom;
        }
        current.clients.clone()
    }
}

fn read_ca(ca: Option<&PathBuf>) -> Result<Option<CustomCa>, String> {
    ca.map(|path| CustomCa::read(path))
        .transpose()
        .map_err(|error| match error.source() {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        })
}

fn report_unusable_ca(problem: &str, fallback: &str, metrics: &Metrics) {
    metrics.ca_fallback();
    tracing::error!(
        problem,
        fallback,
        "the custom CA for registries cannot be used"
    );
}

// === impl Clients ===

impl Clients {
    fn new(custom: Option<&CustomCa>, endpoints: &Arc<Endpoints>) -> Result<Self, SetUpError> {
        let tls = trust::client_config(custom)?;
        Ok(Self {
            proxied: builder(&tls, endpoints).build()?,
            direct: builder(&tls, endpoints).no_proxy().build()?,
        })
    }
}

fn builder(tls: &ClientConfig, endpoints: &Arc<Endpoints>) -> reqwest::ClientBuilder {
    Client::builder()
        .user_agent(USER_AGENT)
        .tls_backend_preconfigured(tls.clone())
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_max_idle_per_host(IDLE_CONNECTIONS)
        .redirect(redirects(Arc::clone(endpoints)))
}

/// Returns the redirect policy.
///
/// Registries redirect clients to blob stores. The HTTP client drops credentials when the host
/// changes; this policy prevents content from being sent unencrypted where TLS was requested.
fn redirects(endpoints: Arc<Endpoints>) -> redirect::Policy {
    redirect::Policy::custom(move |attempt| {
        if attempt.previous().len() > MAX_REDIRECTS {
            return attempt.error("too many redirects");
        }
        if attempt.url().scheme() != "https" && !endpoints.allow_plain_http(attempt.url()) {
            return attempt
                .error("redirected to a host without TLS that is not an insecure registry");
        }
        attempt.follow()
    })
}

/// Returns the causes of an error in one line, outermost first, without repetitions.
pub(crate) fn cause_chain(error: &reqwest::Error) -> String {
    let mut text = if error.is_timeout() {
        "timed out".to_owned()
    } else if error.is_connect() {
        "cannot connect".to_owned()
    } else {
        String::new()
    };
    for layer in causes(error).skip(1).map(ToString::to_string) {
        // These layers of the client add no information.
        let redundant = matches!(
            layer.as_str(),
            "client error (Connect)" | "operation timed out"
        );
        if !redundant && !text.contains(&layer) {
            if !text.is_empty() {
                text.push_str(": ");
            }
            text.push_str(&layer);
        }
    }
    if text.is_empty() {
        error.to_string()
    } else {
        text
    }
}

/// Returns whether the server answered, but not with TLS.
///
/// An untrusted certificate does not count: a fallback to plain HTTP would defeat the check.
pub(crate) fn is_plaintext_server(error: &reqwest::Error) -> bool {
    error.is_connect() && error.source().is_some_and(is_not_tls)
}

/// Returns whether an error, or one of its causes, is that the peer does not use TLS.
///
/// Follows both `source` and the inner errors of I/O errors, which `source` does not return.
fn is_not_tls(error: &(dyn StdError + 'static)) -> bool {
    if let Some(tls) = error.downcast_ref() {
        return matches!(tls, rustls::Error::InvalidMessage(_));
    }
    let inner = match error.downcast_ref::<io::Error>() {
        Some(io) => match io.get_ref() {
            Some(inner) => Some(inner as &(dyn StdError + 'static)),
            None => return matches!(io.kind(), io::ErrorKind::ConnectionReset),
        },
        None => error.source(),
    };
    inner.is_some_and(is_not_tls)
}
