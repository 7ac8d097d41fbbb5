//! Clients that make the server hold what they do not take or finish.

use proto::temporal::api::common::v1::{Payload, Payloads, WorkflowType};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::raw::{Connection, DESCRIBE_NAMESPACE, WINDOW, prefixed};
use super::*;
use crate::transport::process::Process;

/// A run whose history is near the largest answer.
async fn a_large_run(address: std::net::SocketAddr) {
    let mut connection = Connection::open(address, WINDOW).await;
    let payload = Payload { data: vec![7; 1_900_000].into(), ..Default::default() };
    let start = public::StartWorkflowExecutionRequest {
        namespace: NAMESPACE.into(),
        workflow_id: "large".into(),
        workflow_type: Some(WorkflowType { name: "t".into() }),
        task_queue: Some(TaskQueue { name: "large".into(), ..Default::default() }),
        input: Some(Payloads { payloads: vec![payload] }),
        ..Default::default()
    };
    let stream = connection.call("StartWorkflowExecution", &start).await;
    let answer = connection.answer(stream, PATIENCE).await;
    assert!(answer.data > 0, "{answer:?}");
}

/// An ordinary client is served meanwhile.
async fn is_served(address: std::net::SocketAddr) {
    let mut connection = Connection::open(address, WINDOW).await;
    let stream = connection.call(DESCRIBE_NAMESPACE, &describe_request()).await;
    let answer = connection.answer(stream, PATIENCE).await;
    assert!(answer.data > 0 && !answer.is_reset, "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn uploads_that_never_end_hold_a_bounded_part_of_memory_and_are_ended() {
    let process = Process::start("true");
    let request = public::SignalWorkflowExecutionRequest {
        input: Some(Payloads { payloads: vec![Payload { data: vec![7; 3_900_000].into(), ..Default::default() }] }),
        ..Default::default()
    };
    let message = prefixed(&request);
    let mut uploads = JoinSet::new();
    for _ in 0..4 {
        let (address, message) = (process.address, message.clone());
        uploads.spawn(async move {
            let mut connection = Connection::open(address, WINDOW).await;
            let mut n_taken = 0;
            for _ in 0..50 {
                let stream = connection.headers("SignalWorkflowExecution", &[]).await;
                // All but the last byte, unless there is no room for it.
                n_taken += usize::from(connection.part(stream, &message[..message.len() - 1]).await);
            }
            (connection, n_taken)
        });
    }
    let uploads = uploads.join_all().await;
    let n_taken: usize = uploads.iter().map(|(_, n_taken)| n_taken).sum();
    assert!((8..50).contains(&n_taken), "{n_taken} of 200 were taken");
    is_served(process.address).await;
    let held = process.memory_mib();
    assert!(held < MEMORY_MIB_MAX, "{held} MiB");
    // No client has disconnected, and the uploads are ended all the same.
    eventually("uploads are ended", || async { process.memory_mib() < MEMORY_MIB_MAX / 2 }).await;
    is_served(process.address).await;
    drop(uploads);
}

#[tokio::test(flavor = "multi_thread")]
async fn open_calls_and_their_headers_are_bounded_in_all() {
    let process = Process::start("true");
    let before = process.memory_mib();
    let token = "t".repeat(60_000);
    let mut connections = Vec::new();
    for _ in 0..4 {
        let mut connection = Connection::open(process.address, WINDOW).await;
        for _ in 0..1_000 {
            // Headers of 60 kB, in frames of at most 16: the client's own bound.
            connection.headers(DESCRIBE_NAMESPACE, &[("authorization", &token[..15_000])]).await;
        }
        connections.push(connection);
    }
    is_served(process.address).await;
    let held = process.memory_mib();
    assert!(held < before + 200, "{before} MiB before, {held} MiB held");
}

/// Of HTTP/1, each with one answer that it does not read.
const READERS: usize = 80;

#[tokio::test(flavor = "multi_thread")]
async fn http_clients_that_never_read_hold_a_bounded_part_of_memory() {
    let process = Process::start("true");
    a_large_run(process.address).await;
    let head = "GET /api/v1/namespaces/default/workflows/large/history HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut readers = Vec::new();
    for _ in 0..READERS {
        let mut stream = TcpStream::connect(process.http_address).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        readers.push(stream);
    }
    // Each has begun to be answered, or was closed.
    for stream in &mut readers {
        let _ = tokio::time::timeout(PATIENCE, stream.read(&mut [0])).await.expect("an answer in time");
    }
    is_served(process.address).await;
    let held = process.memory_mib();
    assert!(held < MEMORY_MIB_MAX, "{held} MiB");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_over_http_that_never_ends_is_given_up() {
    let process = Process::start("true");
    let mut stream = TcpStream::connect(process.http_address).await.unwrap();
    let head = "POST /api/v1/namespaces/default/workflows/w HTTP/1.1\r\nHost: localhost\r\n\
                Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"a";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("an answer in time").unwrap();
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 504 "), "{answer}");
    assert!(answer.contains("the request did not arrive within 20 s"), "{answer}");
}
