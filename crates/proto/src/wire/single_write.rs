//! A connection that sends a short response in one write.
//!
//! h2 writes a message of some length together with the frames before it, flushes, and only then
//! writes the trailers. That makes two packets, each of which wakes the caller, and an additional
//! system call here. The flush after such a message is therefore skipped: another flush always
//! follows, after the remaining frames that h2 has to send. This is for plaintext only: under TLS,
//! h2 does not write to this connection directly.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tonic::transport::server::Connected;

/// Longest write in bytes that is buffered (16 KiB).
///
/// Longer ones are passed on directly, because the copy would cost more than it saves.
const MAX_BUFFERED: usize = 16 << 10;

/// A connection with a buffer of outgoing bytes.
#[derive(Debug)]
pub struct SingleWrite<C> {
    connection: C,
    outgoing: BytesMut,
    /// Whether to skip the next flush, because the last write was a message with frames before it.
    skips_flush: bool,
}

// === impl SingleWrite ===

impl<C: AsyncWrite + Unpin> SingleWrite<C> {
    /// Returns a connection that buffers short writes until they are complete.
    #[must_use]
    pub fn new(connection: C) -> Self {
        Self {
            connection,
            outgoing: BytesMut::new(),
            skips_flush: false,
        }
    }

    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.outgoing.has_remaining() {
            let connection = Pin::new(&mut self.connection);
            match ready!(connection.poll_write(context, &self.outgoing))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                sent => self.outgoing.advance(sent),
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<C: AsyncWrite + Unpin> AsyncWrite for SingleWrite<C> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.skips_flush = parts.len() > 1;
        let length = parts.iter().map(|part| part.len()).sum();
        if self.outgoing.len() + length > MAX_BUFFERED {
            ready!(self.poll_send(context))?;
        }
        if length > MAX_BUFFERED {
            return Pin::new(&mut self.connection).poll_write_vectored(context, parts);
        }
        for part in parts {
            self.outgoing.extend_from_slice(part);
        }
        Poll::Ready(Ok(length))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if std::mem::take(&mut self.skips_flush) {
            return Poll::Ready(Ok(()));
        }
        ready!(self.poll_send(context))?;
        Pin::new(&mut self.connection).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_send(context))?;
        Pin::new(&mut self.connection).poll_shutdown(context)
    }
}

impl<C: AsyncRead + Unpin> AsyncRead for SingleWrite<C> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_read(context, buffer)
    }
}

impl<C: Connected> Connected for SingleWrite<C> {
    type ConnectInfo = C::ConnectInfo;

    fn connect_info(&self) -> C::ConnectInfo {
        self.connection.connect_info()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::poll_fn,
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
    };

    use hyper_util::rt::TokioIo;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
    use tokio_stream::StreamExt;
    use tonic::{
        Request, Response, Status,
        transport::{Endpoint, Server},
    };
    use tower::service_fn;

    use super::*;
    use crate::evaluator::{
        EvaluateFunctionRequest, EvaluateFunctionResponse,
        function_evaluator_client::FunctionEvaluatorClient,
        function_evaluator_server::{FunctionEvaluator, FunctionEvaluatorServer},
    };

    /// A writer that records every write.
    #[derive(Default)]
    struct Recorded(Vec<Vec<u8>>);

    impl AsyncWrite for Recorded {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.0.push(bytes.to_vec());
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    /// A connection of a server that counts the writes that reach it.
    struct Counted {
        stream: DuplexStream,
        writes: Arc<AtomicUsize>,
    }

    impl AsyncWrite for Counted {
        fn poll_write(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.writes.fetch_add(1, Ordering::SeqCst);
            Pin::new(&mut self.stream).poll_write(context, bytes)
        }

        fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.stream).poll_flush(context)
        }

        fn poll_shutdown(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<io::Result<()>> {
            Pin::new(&mut self.stream).poll_shutdown(context)
        }
    }

    impl AsyncRead for Counted {
        fn poll_read(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Pin::new(&mut self.stream).poll_read(context, buffer)
        }
    }

    impl Connected for Counted {
        type ConnectInfo = ();

        fn connect_info(&self) {}
    }

    struct Echo;

    #[tonic::async_trait]
    impl FunctionEvaluator for Echo {
        async fn evaluate_function(
            &self,
            request: Request<EvaluateFunctionRequest>,
        ) -> Result<Response<EvaluateFunctionResponse>, Status> {
            let resource_list = request.into_inner().resource_list;
            Ok(Response::new(EvaluateFunctionResponse {
                resource_list,
                ..EvaluateFunctionResponse::default()
            }))
        }
    }

    /// Returns the number of writes of a server for one response of a few kilobytes, over a
    /// connection that `wrap` returns.
    async fn writes_of_a_response<C>(wrap: impl FnOnce(Counted) -> C) -> usize
    where
        C: AsyncRead
            + AsyncWrite
            + Connected<ConnectInfo: Clone + Send + Sync + 'static>
            + Unpin
            + Send
            + 'static,
    {
        let (near, far) = duplex(1 << 20);
        let writes = Arc::new(AtomicUsize::new(0));
        let connection = wrap(Counted {
            stream: near,
            writes: Arc::clone(&writes),
        });
        let server = Server::builder().add_service(FunctionEvaluatorServer::new(Echo));
        let incoming =
            tokio_stream::once(Ok::<_, io::Error>(connection)).chain(tokio_stream::pending());
        let serving = tokio::spawn(server.serve_with_incoming(incoming));
        let mut far = Some(TokioIo::new(far));
        let channel = Endpoint::from_static("http://test")
            .connect_with_connector(service_fn(move |_| {
                let far = far.take();
                async move { far.ok_or_else(|| io::Error::other("connected before")) }
            }))
            .await
            .unwrap();
        let mut client = FunctionEvaluatorClient::new(channel);
        let request = EvaluateFunctionRequest {
            resource_list: vec![b'x'; 4000].into(),
            ..EvaluateFunctionRequest::default()
        };
        // The first call also writes settings.
        client.evaluate_function(request.clone()).await.unwrap();
        let before = writes.load(Ordering::SeqCst);
        client.evaluate_function(request).await.unwrap();
        serving.abort();
        writes.load(Ordering::SeqCst) - before
    }

    #[tokio::test]
    async fn h2_writes_a_response_twice_and_this_connection_once() {
        let direct = writes_of_a_response(|connection| connection).await;
        let single = writes_of_a_response(SingleWrite::new).await;
        assert_eq!((direct > single, single), (true, 1), "direct: {direct}");
    }

    async fn write<C: AsyncWrite + Unpin>(to: &mut SingleWrite<C>, parts: &[&[u8]]) -> usize {
        let parts: Vec<_> = parts.iter().map(|part| IoSlice::new(part)).collect();
        to.write_vectored(&parts).await.unwrap()
    }

    async fn flush<C: AsyncWrite + Unpin>(connection: &mut SingleWrite<C>) {
        poll_fn(|context| Pin::new(&mut *connection).poll_flush(context))
            .await
            .unwrap();
    }

    #[tokio::test]
    async fn sends_a_response_in_one_write() {
        let mut single = SingleWrite::new(Recorded::default());
        write(&mut single, &[b"head", b"message"]).await;
        flush(&mut single).await;
        write(&mut single, &[b"trailers"]).await;
        flush(&mut single).await;
        assert_eq!(single.connection.0, [b"headmessagetrailers".to_vec()]);
    }

    #[tokio::test]
    async fn sends_a_message_that_nothing_follows() {
        let mut single = SingleWrite::new(Recorded::default());
        for message in [&b"first"[..], b"second"] {
            write(&mut single, &[b"head", message]).await;
            flush(&mut single).await;
            flush(&mut single).await;
        }
        let sent = [b"headfirst".to_vec(), b"headsecond".to_vec()];
        assert_eq!(single.connection.0, sent);
    }

    #[tokio::test]
    async fn passes_long_writes_on_in_order() {
        let mut single = SingleWrite::new(Recorded::default());
        let long = vec![b'x'; MAX_BUFFERED + 1];
        write(&mut single, &[b"before"]).await;
        assert_eq!(write(&mut single, &[&long]).await, long.len());
        write(&mut single, &[b"after"]).await;
        single.shutdown().await.unwrap();
        let sent = [b"before".to_vec(), long, b"after".to_vec()];
        assert_eq!(single.connection.0, sent);
    }

    #[tokio::test]
    async fn a_slow_connection_loses_nothing() {
        let (near, mut far) = duplex(1000);
        let mut single = SingleWrite::new(near);
        let text: Vec<u8> = (0_u8..=250).cycle().take(9 * MAX_BUFFERED).collect();
        let sent = text.clone();
        let sending = tokio::spawn(async move {
            for part in sent.chunks(MAX_BUFFERED / 3) {
                single.write_all(part).await.unwrap();
            }
            single.shutdown().await.unwrap();
        });
        let mut received = Vec::new();
        far.read_to_end(&mut received).await.unwrap();
        sending.await.unwrap();
        assert_eq!(received, text);
    }
}
