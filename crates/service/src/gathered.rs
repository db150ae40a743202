//! A connection that sends a response in one write.
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
const LONGEST: usize = 16 << 10;

/// A connection with a buffer of outgoing bytes.
#[derive(Debug)]
pub(crate) struct Gathered<C> {
    connection: C,
    outgoing: BytesMut,
    /// Whether to skip the next flush, because the last write was a message with frames before it.
    skips_flush: bool,
}

// === impl Gathered ===

impl<C: AsyncWrite + Unpin> Gathered<C> {
    pub(crate) fn new(connection: C) -> Self {
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

impl<C: AsyncWrite + Unpin> AsyncWrite for Gathered<C> {
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
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.skips_flush = pieces.len() > 1;
        let length = pieces.iter().map(|piece| piece.len()).sum();
        if self.outgoing.len() + length > LONGEST {
            ready!(self.poll_send(context))?;
        }
        if length > LONGEST {
            return Pin::new(&mut self.connection).poll_write_vectored(context, pieces);
        }
        for piece in pieces {
            self.outgoing.extend_from_slice(piece);
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

impl<C: AsyncRead + Unpin> AsyncRead for Gathered<C> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_read(context, buffer)
    }
}

impl<C: Connected> Connected for Gathered<C> {
    type ConnectInfo = C::ConnectInfo;

    fn connect_info(&self) -> C::ConnectInfo {
        self.connection.connect_info()
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

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

    async fn write<C: AsyncWrite + Unpin>(to: &mut Gathered<C>, pieces: &[&[u8]]) -> usize {
        let pieces: Vec<_> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
        to.write_vectored(&pieces).await.unwrap()
    }

    async fn flush<C: AsyncWrite + Unpin>(connection: &mut Gathered<C>) {
        poll_fn(|context| Pin::new(&mut *connection).poll_flush(context))
            .await
            .unwrap();
    }

    #[tokio::test]
    async fn sends_a_response_in_one_write() {
        let mut gathered = Gathered::new(Recorded::default());
        write(&mut gathered, &[b"head", b"message"]).await;
        flush(&mut gathered).await;
        write(&mut gathered, &[b"trailers"]).await;
        flush(&mut gathered).await;
        assert_eq!(gathered.connection.0, [b"headmessagetrailers".to_vec()]);
    }

    #[tokio::test]
    async fn sends_a_message_that_nothing_follows() {
        let mut gathered = Gathered::new(Recorded::default());
        for message in [&b"first"[..], b"second"] {
            write(&mut gathered, &[b"head", message]).await;
            flush(&mut gathered).await;
            flush(&mut gathered).await;
        }
        let sent = [b"headfirst".to_vec(), b"headsecond".to_vec()];
        assert_eq!(gathered.connection.0, sent);
    }

    #[tokio::test]
    async fn passes_long_writes_on_in_order() {
        let mut gathered = Gathered::new(Recorded::default());
        let long = vec![b'x'; LONGEST + 1];
        write(&mut gathered, &[b"before"]).await;
        assert_eq!(write(&mut gathered, &[&long]).await, long.len());
        write(&mut gathered, &[b"after"]).await;
        gathered.shutdown().await.unwrap();
        let sent = [b"before".to_vec(), long, b"after".to_vec()];
        assert_eq!(gathered.connection.0, sent);
    }

    #[tokio::test]
    async fn a_slow_connection_loses_nothing() {
        let (near, mut far) = duplex(1000);
        let mut gathered = Gathered::new(near);
        let text: Vec<u8> = (0_u8..=250).cycle().take(9 * LONGEST).collect();
        let sent = text.clone();
        let sending = tokio::spawn(async move {
            for piece in sent.chunks(LONGEST / 3) {
                gathered.write_all(piece).await.unwrap();
            }
            gathered.shutdown().await.unwrap();
        });
        let mut received = Vec::new();
        far.read_to_end(&mut received).await.unwrap();
        sending.await.unwrap();
        assert_eq!(received, text);
    }
}
