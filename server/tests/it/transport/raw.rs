//! HTTP/2 by hand: frames, and headers as literals.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// What clients usually let a server send.
pub(crate) const WINDOW: u32 = 65_535;
const SERVICE: &str = "/temporal.api.workflowservice.v1.WorkflowService/";
pub(crate) const DESCRIBE_NAMESPACE: &str = "DescribeNamespace";

/// A server that has room for more of a request says so in this time.
const TAKES_WITHIN: Duration = Duration::from_secs(10);

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;

const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

#[derive(Debug)]
pub(crate) struct Frame {
    kind: u8,
    flags: u8,
    pub(crate) stream: u32,
    payload: Vec<u8>,
}

#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) data: usize,
    pub(crate) is_reset: bool,
    /// The last frame has the status: trailers, or the head of an error.
    pub(crate) ends_with_status: bool,
}

/// A client's side of a connection.
pub(crate) struct Connection {
    stream: TcpStream,
    next_stream: u32,
    /// What has been read and not been looked for yet.
    frames: Vec<Frame>,
    credit: Credit,
}

/// What the server lets us send.
struct Credit {
    connection: i64,
    /// On a stream at first, and what has been added to it or used up since.
    initial: i64,
    streams: HashMap<u32, i64>,
}

impl Credit {
    fn of(&self, stream: u32) -> i64 {
        self.connection.min(self.initial + self.streams.get(&stream).copied().unwrap_or_default())
    }

    fn add(&mut self, stream: u32, bytes: i64) {
        match stream {
            0 => self.connection += bytes,
            _ => *self.streams.entry(stream).or_default() += bytes,
        }
    }
}

impl Connection {
    /// Shakes hands, and lets the server send so much on each stream.
    pub(crate) async fn open(address: SocketAddr, window: u32) -> Self {
        let mut stream = TcpStream::connect(address).await.expect("the node listens");
        let mut bytes = PREFACE.to_vec();
        let mut settings = 4u16.to_be_bytes().to_vec();
        settings.extend(window.to_be_bytes());
        bytes.extend(frame(SETTINGS, 0, 0, &settings));
        stream.write_all(&bytes).await.expect("the node reads");
        let credit = Credit { connection: WINDOW.into(), initial: WINDOW.into(), streams: HashMap::new() };
        Self { stream, next_stream: 1, frames: Vec::new(), credit }
    }

    /// Opens a call, and says nothing more.
    pub(crate) async fn headers(&mut self, method: &str, headers: &[(&str, &str)]) -> u32 {
        let (stream, bytes) = self.head(method, headers);
        self.write(&bytes).await;
        stream
    }

    /// A whole call.
    pub(crate) async fn call(&mut self, method: &str, message: &impl prost::Message) -> u32 {
        let stream = self.headers(method, &[]).await;
        let message = prefixed(message);
        let (most, last) = message.split_at(message.len() - 1);
        if self.part(stream, most).await {
            self.write(&data(stream, last, END_STREAM)).await;
        }
        stream
    }

    /// Calls that are cancelled as soon as they are sent, all in one piece.
    pub(crate) async fn cancelled_calls(&mut self, method: &str, count: usize) -> std::io::Result<()> {
        let mut bytes = Vec::new();
        for _ in 0..count {
            let (stream, head) = self.head(method, &[]);
            bytes.extend(head);
            bytes.extend(frame(RST_STREAM, 0, stream, &8u32.to_be_bytes()));
        }
        self.stream.write_all(&bytes).await
    }

    /// A part of a request's body, not the last, as fast as the server takes it. False if the server has ended the stream
    /// or the connection before, or takes nothing more.
    pub(crate) async fn part(&mut self, stream: u32, bytes: &[u8]) -> bool {
        for piece in bytes.chunks(16 << 10) {
            let length = i64::try_from(piece.len()).expect("a small piece");
            // One byte of it is for the end of the request.
            while self.credit.of(stream) <= length {
                let Ok(Some(read)) = tokio::time::timeout(TAKES_WITHIN, self.step()).await else { return false };
                let Some(frame) = read else { continue };
                let is_over = frame.kind == RST_STREAM || (frame.kind <= HEADERS && frame.flags & END_STREAM != 0);
                let is_ours = frame.stream == stream;
                self.frames.push(frame);
                if is_over && is_ours {
                    return false;
                }
            }
            self.credit.add(stream, -length);
            self.credit.add(0, -length);
            self.write(&data(stream, piece, 0)).await;
        }
        true
    }

    /// Waits for the end of a stream.
    pub(crate) async fn answer(&mut self, stream: u32, patience: Duration) -> Answer {
        self.answer_or_end(stream, patience).await.expect("the connection stays open")
    }

    /// Waits for the end of a stream, or of the connection (`None`).
    pub(crate) async fn answer_or_end(&mut self, stream: u32, patience: Duration) -> Option<Answer> {
        let mut answer = Answer::default();
        loop {
            let frame = match self.frames.iter().position(|frame| frame.stream == stream) {
                Some(at) => self.frames.remove(at),
                None => {
                    let read = tokio::time::timeout(patience, self.read()).await.expect("an answer in time");
                    read.filter(|frame| frame.kind != GOAWAY)?
                }
            };
            if frame.stream != stream {
                self.frames.push(frame);
                continue;
            }
            match frame.kind {
                DATA => answer.data += frame.payload.len(),
                RST_STREAM => answer.is_reset = true,
                _ => {}
            }
            if answer.is_reset || (frame.kind <= HEADERS && frame.flags & END_STREAM != 0) {
                answer.ends_with_status = frame.kind == HEADERS;
                return Some(answer);
            }
        }
    }

    /// Streams of which something has been read and not been asked for.
    pub(crate) fn unexpected(&self) -> Vec<u32> {
        self.frames.iter().map(|frame| frame.stream).filter(|stream| *stream > 0).collect()
    }

    /// The next frame that is not housekeeping. `None` at the end.
    async fn read(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.step().await? {
                return Some(frame);
            }
        }
    }

    /// Reads one frame, and does what housekeeping it asks for.
    async fn step(&mut self) -> Option<Option<Frame>> {
        let mut head = [0; 9];
        self.stream.read_exact(&mut head).await.ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let mut payload = vec![0; length];
        self.stream.read_exact(&mut payload).await.ok()?;
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        let (kind, flags) = (head[3], head[4]);
        match kind {
            SETTINGS if flags & ACK == 0 => {
                let window = payload.chunks(6).find(|setting| setting[..2] == [0, 4]);
                if let Some(&[_, _, a, b, c, d]) = window {
                    self.credit.initial = u32::from_be_bytes([a, b, c, d]).into();
                }
                self.write(&frame(SETTINGS, ACK, 0, &[])).await;
            }
            WINDOW_UPDATE => {
                let added = payload.try_into().map(u32::from_be_bytes).expect("four bytes");
                self.credit.add(stream, added.into());
            }
            PING if flags & ACK == 0 => self.write(&frame(PING, ACK, 0, &payload)).await,
            SETTINGS | PING => {}
            _ => return Some(Some(Frame { kind, flags, stream, payload })),
        }
        Some(None)
    }

    fn head(&mut self, method: &str, headers: &[(&str, &str)]) -> (u32, Vec<u8>) {
        let stream = self.next_stream;
        self.next_stream += 2;
        let path = format!("{SERVICE}{method}");
        let mut block = Vec::new();
        for (name, value) in [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", path.as_str()),
            (":authority", "localhost"),
            ("content-type", "application/grpc"),
            ("te", "trailers"),
        ]
        .iter()
        .chain(headers)
        {
            block.push(0);
            literal(&mut block, name);
            literal(&mut block, value);
        }
        (stream, frame(HEADERS, END_HEADERS, stream, &block))
    }

    async fn write(&mut self, bytes: &[u8]) {
        // A server that has closed the connection says so when it is read.
        let _ = self.stream.write_all(bytes).await;
    }
}

/// A message as gRPC sends it.
pub(crate) fn prefixed(message: &impl prost::Message) -> Vec<u8> {
    let encoded = message.encode_to_vec();
    let mut bytes = vec![0];
    bytes.extend(u32::try_from(encoded.len()).expect("a small message").to_be_bytes());
    bytes.extend(encoded);
    bytes
}

fn data(stream: u32, bytes: &[u8], flags: u8) -> Vec<u8> {
    frame(DATA, flags, stream, bytes)
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a frame").to_be_bytes();
    let mut bytes = vec![length[1], length[2], length[3], kind, flags];
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// A string of HPACK, not compressed.
fn literal(block: &mut Vec<u8>, text: &str) {
    let mut length = text.len();
    if length < 127 {
        block.push(u8::try_from(length).expect("below 127"));
    } else {
        block.push(127);
        length -= 127;
        while length >= 128 {
            block.push(u8::try_from(length % 128).expect("below 128") | 128);
            length /= 128;
        }
        block.push(u8::try_from(length).expect("below 128"));
    }
    block.extend(text.as_bytes());
}
