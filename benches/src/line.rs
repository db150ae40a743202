//! A caller for single calls, with its own connection and as little work as possible.
//!
//! The work of a caller between the end of a function and its own next call is measured as the
//! runner's. An HTTP/2 library takes 0.1 ms for it after a function has evicted the library's code
//! from the caches. This caller therefore writes its frames as bytes and parses only the necessary
//! parts of the response.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};

/// First bytes of every HTTP/2 connection.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Length of a frame header: three bytes of length, type, flags, four bytes of stream.
const HEADER: usize = 9;

/// Maximum length of a frame in bytes unless the peer allows more.
const MAX_FRAME: usize = 16 << 10;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;

const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

/// A connection for consecutive calls of one function on one server.
pub(crate) struct Line {
    connection: TcpStream,
    /// Encoded headers of every call.
    head: Vec<u8>,
    /// Message of every call, with the gRPC prefix.
    message: Vec<u8>,
    next_stream: u32,
    received: Vec<u8>,
}

// === impl Line ===

impl Line {
    /// Opens a line whose calls all send `message`, which includes the gRPC prefix.
    pub(crate) fn open(address: SocketAddr, path: &str, message: Vec<u8>) -> Result<Self> {
        let mut connection = TcpStream::connect(address).context("cannot reach the server")?;
        connection.set_nodelay(true)?;
        let mut hello = PREFACE.to_vec();
        frame(&mut hello, SETTINGS, 0, 0, &[]);
        // Large enough for all responses, so that the server never waits for window updates.
        let window = (1_u32 << 31) - (1 << 16);
        frame(&mut hello, WINDOW_UPDATE, 0, 0, &window.to_be_bytes());
        connection.write_all(&hello)?;
        Ok(Self {
            connection,
            head: head(&address.to_string(), path)?,
            message,
            next_stream: 1,
            received: Vec::new(),
        })
    }

    /// Returns the duration of one call.
    pub(crate) fn time(&mut self) -> Result<Duration> {
        let started = Instant::now();
        let stream = self.next_stream;
        self.next_stream += 2;
        let mut request = Vec::with_capacity(self.head.len() + self.message.len() + 4 * HEADER);
        frame(&mut request, HEADERS, END_HEADERS, stream, &self.head);
        let pieces = self.message.chunks(MAX_FRAME);
        let last = pieces.len() - 1;
        for (number, piece) in pieces.enumerate() {
            let flags = if number == last { END_STREAM } else { 0 };
            frame(&mut request, DATA, flags, stream, piece);
        }
        self.connection.write_all(&request)?;
        let answered = self.answer(stream)?;
        let time = started.elapsed();
        // A refused call has no body.
        ensure!(answered > 0, "the evaluation fails");
        Ok(time)
    }

    /// Waits for the end of a response and returns the length of its body.
    fn answer(&mut self, stream: u32) -> Result<usize> {
        let mut body = 0;
        loop {
            while self.received.len() < HEADER {
                self.receive()?;
            }
            let length = [0, self.received[0], self.received[1], self.received[2]];
            let length = u32::from_be_bytes(length) as usize;
            while self.received.len() < HEADER + length {
                self.receive()?;
            }
            let (kind, flags) = (self.received[3], self.received[4]);
            let whose = u32::from_be_bytes(self.received[5..HEADER].try_into()?);
            let rest = self.received.split_off(HEADER + length);
            let content = std::mem::replace(&mut self.received, rest).split_off(HEADER);
            match kind {
                DATA | HEADERS if whose == stream => {
                    if kind == DATA {
                        body += content.len();
                    }
                    if flags & END_STREAM != 0 {
                        return Ok(body);
                    }
                }
                SETTINGS if flags & ACK == 0 => self.reply(SETTINGS, &[])?,
                PING if flags & ACK == 0 => self.reply(PING, &content)?,
                SETTINGS | PING | WINDOW_UPDATE => {}
                _ => bail!("a frame of type {kind} instead of an answer"),
            }
        }
    }

    fn receive(&mut self) -> Result<()> {
        let mut piece = [0; MAX_FRAME];
        let read = self.connection.read(&mut piece)?;
        ensure!(read > 0, "the server hangs up");
        self.received.extend_from_slice(&piece[..read]);
        Ok(())
    }

    fn reply(&mut self, kind: u8, content: &[u8]) -> Result<()> {
        let mut reply = Vec::new();
        frame(&mut reply, kind, ACK, 0, content);
        Ok(self.connection.write_all(&reply)?)
    }
}

fn frame(into: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, content: &[u8]) {
    let length = u32::try_from(content.len()).unwrap_or(u32::MAX);
    into.extend_from_slice(&length.to_be_bytes()[1..]);
    into.extend_from_slice(&[kind, flags]);
    into.extend_from_slice(&stream.to_be_bytes());
    into.extend_from_slice(content);
}

/// Encodes the headers of a call: two by their number in HPACK's static table, the others as text.
fn head(authority: &str, path: &str) -> Result<Vec<u8>> {
    const POST: u8 = 0x83;
    const HTTP: u8 = 0x86;
    let mut head = vec![POST, HTTP];
    for (name, value) in [
        (":path", path),
        (":authority", authority),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ] {
        head.push(0);
        for text in [name, value] {
            ensure!(text.len() < 127, "a header too long to be short: {text}");
            head.push(u8::try_from(text.len())?);
            head.extend_from_slice(text.as_bytes());
        }
    }
    Ok(head)
}
