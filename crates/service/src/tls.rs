//! TLS of the server, with certificates that can be replaced while it serves.

use std::{
    io,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use futures::{Stream, StreamExt};
use rustls::{
    RootCertStore, ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem, pem::PemObject},
    server::{VerifierBuilderError, WebPkiClientVerifier},
};
use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

/// Time limit of a client's handshake (10 s).
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Largest number of concurrent handshakes; further connections wait.
const MAX_HANDSHAKES: usize = 256;

/// PEM texts of a TLS server.
#[derive(Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The server's certificate chain.
    pub certificate: Vec<u8>,
    /// The private key of the certificate.
    pub key: Vec<u8>,
    /// CA that must have issued the certificate of every client; none: clients need no certificate.
    pub client_ca: Option<Vec<u8>>,
}

/// The TLS configuration in use. Clones share it.
#[derive(Clone)]
pub struct Tls {
    config: Arc<RwLock<Arc<ServerConfig>>>,
}

/// A reason why certificates cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The certificate chain is not in PEM form.
    #[error("cannot use the TLS certificate: {0}")]
    Certificate(#[source] pem::Error),
    /// The key is not in PEM form.
    #[error("cannot use the TLS key: {0}")]
    Key(#[source] pem::Error),
    /// The CA of clients is not in PEM form.
    #[error("cannot use the authority of clients: {0}")]
    ClientAuthority(#[source] pem::Error),
    /// The certificate and the key do not match, or a certificate of the CA of clients is unusable.
    #[error("cannot use the TLS certificate and its key: {0}")]
    Pair(#[source] rustls::Error),
    /// The CA of clients cannot be used to verify clients.
    #[error("cannot use the authority of clients: {0}")]
    Verifier(#[from] VerifierBuilderError),
}

// === impl Tls ===

impl Tls {
    /// Returns a configuration with these certificates.
    ///
    /// # Errors
    /// Fails if a text is malformed or the key belongs to another certificate.
    pub fn new(files: &TlsFiles) -> Result<Self, TlsError> {
        let config = Arc::new(RwLock::new(files.config()?));
        Ok(Self { config })
    }

    /// Replaces the certificates for new connections.
    ///
    /// # Errors
    /// Fails as [`Self::new`] does; the previous certificates then stay in use.
    pub fn replace(&self, files: &TlsFiles) -> Result<(), TlsError> {
        let config = files.config()?;
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = config;
        Ok(())
    }

    fn current(&self) -> Arc<ServerConfig> {
        let config = self.config.read().unwrap_or_else(PoisonError::into_inner);
        config.clone()
    }

    /// Returns the connections whose handshake succeeded.
    pub(crate) fn accept(
        self,
        incoming: impl Stream<Item = io::Result<TcpStream>>,
    ) -> impl Stream<Item = io::Result<TlsStream<TcpStream>>> {
        incoming
            .map(move |connection| self.clone().shake_hands(connection))
            .buffer_unordered(MAX_HANDSHAKES)
            .filter_map(std::future::ready)
    }

    /// Performs the handshake. Returns errors of the listener itself, and none if the client
    /// failed.
    async fn shake_hands(
        self,
        connection: io::Result<TcpStream>,
    ) -> Option<io::Result<TlsStream<TcpStream>>> {
        let connection = match connection {
            Ok(connection) => connection,
            Err(error) => return Some(Err(error)),
        };
        let acceptor = TlsAcceptor::from(self.current());
        let accepted = timeout(HANDSHAKE_TIMEOUT, acceptor.accept(connection)).await;
        match accepted.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
            Ok(connection) => Some(Ok(connection)),
            Err(error) => {
                tracing::debug!(%error, "a TLS handshake failed");
                None
            }
        }
    }
}

// === impl TlsFiles ===

impl TlsFiles {
    fn config(&self) -> Result<Arc<ServerConfig>, TlsError> {
        let chain = certificates(&self.certificate).map_err(TlsError::Certificate)?;
        let key = PrivateKeyDer::from_pem_slice(&self.key).map_err(TlsError::Key)?;
        let builder = ServerConfig::builder();
        let builder = match &self.client_ca {
            None => builder.with_no_client_auth(),
            Some(authority) => {
                let mut roots = RootCertStore::empty();
                for root in certificates(authority).map_err(TlsError::ClientAuthority)? {
                    roots.add(root).map_err(TlsError::Pair)?;
                }
                let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).build()?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let config = builder.with_single_cert(chain, key);
        let mut config = config.map_err(TlsError::Pair)?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Arc::new(config))
    }
}

/// Parses the certificates of a PEM text, which must contain at least one.
fn certificates(text: &[u8]) -> Result<Vec<CertificateDer<'static>>, pem::Error> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(text).collect::<Result<_, _>>()?;
    if chain.is_empty() {
        return Err(pem::Error::NoItemsFound);
    }
    Ok(chain)
}
