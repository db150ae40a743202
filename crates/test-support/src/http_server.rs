//! An HTTP server whose replies a test chooses, including broken ones.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::AbortHandle,
};

const MAX_HEAD: usize = 64 << 10;
const TLS_HANDSHAKE: u8 = 0x16;

/// A received request.
#[derive(Clone, Debug)]
pub struct Request {
    /// Method, such as `GET`.
    pub method: String,
    /// Path with the query.
    pub path: String,
    headers: Vec<(String, String)>,
    /// Content of the request.
    pub body: Bytes,
    raw: Bytes,
}

/// The server's reaction to a request.
pub enum Reply {
    /// The server sends a complete response with its length.
    Full {
        /// Status code, such as 200.
        status: u16,
        /// Headers besides `Content-Length` and `Connection`.
        headers: Vec<(String, String)>,
        /// Content of the response.
        body: Bytes,
    },
    /// The server announces 100 bytes more than it sends, then closes the connection.
    Truncated(Bytes),
    /// The server sends chunks until the client closes the connection.
    Endless,
    /// The server never answers.
    Silent,
    /// The server forwards the request to this address and the response back.
    Forward(SocketAddr),
}

/// A running server, which stops when this value is dropped.
pub struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
    task: AbortHandle,
}

// === impl Request ===

impl Request {
    /// Returns the value of a header; `name` must be in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(header, _)| header == name)
            .map(|(_, value)| value.as_str())
    }

    async fn read(stream: &mut TcpStream) -> Option<Self> {
        let mut raw = Vec::new();
        let head = loop {
            if let Some(end) = raw.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break end + 4;
            }
            if raw.len() > MAX_HEAD || stream.read_buf(&mut raw).await.ok()? == 0 {
                return None;
            }
            if raw.first() == Some(&TLS_HANDSHAKE) {
                // The answer of common servers to a TLS handshake on a plain port.
                stream
                    .write_all(b"HTTP/1.0 400 Bad Request\r\n\r\n")
                    .await
                    .ok()?;
                return None;
            }
        };
        let text = String::from_utf8_lossy(&raw[..head]).into_owned();
        let mut lines = text.lines();
        let mut first = lines.next()?.split(' ');
        let (method, path) = (first.next()?.to_owned(), first.next()?.to_owned());
        let headers: Vec<_> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let length = headers
            .iter()
            .find(|(name, _)| name == "content-length")
            .map_or(Some(0), |(_, value)| value.parse().ok())?;
        while raw.len() < head + length {
            if stream.read_buf(&mut raw).await.ok()? == 0 {
                return None;
            }
        }
        let raw = Bytes::from(raw);
        Some(Self {
            method,
            path,
            headers,
            body: raw.slice(head..),
            raw,
        })
    }
}

// === impl Reply ===

impl Reply {
    /// Returns a complete response without additional headers.
    pub fn new(status: u16, body: impl Into<Bytes>) -> Self {
        Self::Full {
            status,
            headers: Vec::new(),
            body: body.into(),
        }
    }

    /// Adds a header to a complete response.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        if let Self::Full { headers, .. } = &mut self {
            headers.push((name.to_owned(), value.into()));
        }
        self
    }

    /// Sends the reply and closes the connection; each connection carries one request.
    async fn send(self, stream: &mut TcpStream, request: &Request) -> std::io::Result<()> {
        match self {
            Self::Full {
                status,
                headers,
                body,
            } => {
                let mut head = format!("HTTP/1.1 {status} Reply\r\nConnection: close\r\n");
                for (name, value) in headers {
                    head.push_str(&format!("{name}: {value}\r\n"));
                }
                head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
                stream.write_all(head.as_bytes()).await?;
                if request.method != "HEAD" {
                    stream.write_all(&body).await?;
                }
            }
            Self::Truncated(body) => {
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n",
                    body.len() + 100
                );
                stream.write_all(head.as_bytes()).await?;
                stream.write_all(&body).await?;
            }
            Self::Endless => {
                stream
                    .write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                    .await?;
                let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
                loop {
                    stream.write_all(chunk.as_bytes()).await?;
                }
            }
            // Blocks until the client closes the connection.
            Self::Silent => {
                stream.read_u8().await?;
            }
            Self::Forward(to) => {
                let mut server = TcpStream::connect(to).await?;
                let raw = String::from_utf8_lossy(&request.raw);
                let raw = raw.replacen("\r\n", "\r\nConnection: close\r\n", 1);
                server.write_all(raw.as_bytes()).await?;
                tokio::io::copy(&mut server, stream).await?;
            }
        }
        stream.shutdown().await
    }
}

// === impl Server ===

impl Server {
    /// Starts a server on a free port of loopback.
    pub async fn start<F>(answer: F) -> Self
    where
        F: Fn(&Request) -> Reply + Send + Sync + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (recorded, answer) = (Arc::clone(&requests), Arc::new(answer));
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (recorded, answer) = (Arc::clone(&recorded), Arc::clone(&answer));
                tokio::spawn(async move {
                    if let Some(request) = Request::read(&mut stream).await {
                        recorded
                            .lock()
                            .expect("no test panics in here")
                            .push(request.clone());
                        // Some tests close the connection before the response is complete.
                        let _ = answer(&request).send(&mut stream, &request).await;
                    }
                });
            }
        });
        Self {
            address,
            requests,
            task: task.abort_handle(),
        }
    }

    /// Starts a server that records all requests and forwards them to another server.
    pub async fn in_front_of(host: &str) -> Self {
        let to: SocketAddr = host.parse().expect("an address and a port");
        Self::start(move |_| Reply::Forward(to)).await
    }

    /// Returns host and port, as image references contain them.
    #[must_use]
    pub fn host(&self) -> String {
        self.address.to_string()
    }

    /// Returns all requests received so far.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.requests
            .lock()
            .expect("no test panics in here")
            .clone()
    }

    /// Returns the number of requests with this method whose path contains `path`.
    #[must_use]
    pub fn count(&self, method: &str, path: &str) -> usize {
        let requests = self.requests();
        requests
            .iter()
            .filter(|request| request.method == method && request.path.contains(path))
            .count()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}
