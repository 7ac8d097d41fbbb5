//! The least that a client of HTTP/1.1 needs: one request per connection.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

#[derive(Clone, Copy)]
pub(super) struct Http {
    pub(super) address: SocketAddr,
}

#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) content_type: String,
    pub(super) body: String,
}

impl Http {
    pub(super) async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, "", "").await
    }

    pub(super) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send("POST", path, "Content-Type: application/json\r\n", &body.to_string()).await
    }

    pub(super) async fn send(&self, verb: &str, path: &str, headers: &str, body: &str) -> Answer {
        self.send_as(&format!("{verb} {path} HTTP/1.1\r\nHost: localhost\r\n{headers}"), body).await
    }

    /// With a head that names its host itself.
    pub(super) async fn send_as(&self, head: &str, body: &str) -> Answer {
        let mut stream = TcpStream::connect(self.address).await.expect("the node listens");
        let length = body.len();
        let head = format!("{head}Connection: close\r\nContent-Length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.expect("the node reads");
        // One that is refused may be left unread.
        let _ = stream.write_all(body.as_bytes()).await;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.expect("the node answers");
        Answer::parse(&String::from_utf8(bytes).expect("it answers with text"))
    }
}

impl Answer {
    fn parse(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        let content_type = head.lines().find_map(|line| line.strip_prefix("content-type: ")).unwrap_or_default();
        Self { status, content_type: content_type.to_owned(), body: body.to_owned() }
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    #[track_caller]
    pub(super) fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.body);
        self.json()
    }
}
