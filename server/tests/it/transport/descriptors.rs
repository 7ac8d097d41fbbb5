//! A process that runs out of file descriptors.

use std::process::Command;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::raw::{Connection, DESCRIBE_NAMESPACE, WINDOW};
use super::*;
use crate::transport::process::Process;

/// The hard limit of the process.
const FILES_MAX: usize = 128;

fn start_request(workflow_id: &str) -> public::StartWorkflowExecutionRequest {
    public::StartWorkflowExecutionRequest {
        namespace: NAMESPACE.into(),
        workflow_id: workflow_id.into(),
        workflow_type: Some(proto::temporal::api::common::v1::WorkflowType { name: "t".into() }),
        task_queue: Some(TaskQueue { name: "files".into(), ..Default::default() }),
        request_id: workflow_id.into(),
        ..Default::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn more_connections_than_descriptors_stop_neither_clients_nor_the_store() {
    let process = Process::start(&format!("ulimit -n {FILES_MAX}"));
    let mut client = Connection::open(process.address, WINDOW).await;
    let poll = client.call("PollWorkflowTaskQueue", &poll_request("nothing")).await;
    let stream = client.call("StartWorkflowExecution", &start_request("before")).await;
    assert!(client.answer(stream, PATIENCE).await.data > 0);
    let mut idle = Vec::new();
    for _ in 0..FILES_MAX * 3 {
        // Some are refused, and all the rest wait in the listener's queue or are served.
        if let Ok(stream) = TcpStream::connect(process.address).await {
            idle.push(stream);
        }
    }
    for number in 0..20 {
        let stream = client.call("StartWorkflowExecution", &start_request(&format!("during-{number}"))).await;
        let answer = client.answer(stream, PATIENCE).await;
        assert!(answer.data > 0, "the store writes: {answer:?}");
    }
    assert!(!client.unexpected().contains(&poll), "the poll still waits");
    let mut newcomer = Connection::open(process.address, WINDOW).await;
    let stream = newcomer.call(DESCRIBE_NAMESPACE, &describe_request()).await;
    assert!(newcomer.answer(stream, PATIENCE).await.data > 0, "idle connections make room for a new client");
    drop(idle);
    for _ in 0..FILES_MAX {
        let mut newcomer = Connection::open(process.address, WINDOW).await;
        let stream = newcomer.call(DESCRIBE_NAMESPACE, &describe_request()).await;
        assert!(newcomer.answer(stream, PATIENCE).await.data > 0);
    }
    let (status, _) = process.terminate();
    assert!(status.success(), "{status}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_limit_of_open_files_is_raised_to_what_the_system_allows() {
    let hard = Command::new("sh").args(["-c", "ulimit -Hn"]).output().expect("a shell");
    let hard = String::from_utf8(hard.stdout).expect("text");
    let process = Process::start("ulimit -Sn 100");
    if let Ok(hard) = hard.trim().parse::<usize>() {
        assert_eq!(process.files_max(), hard);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_says_nothing_is_closed_and_an_idle_one_is_not() {
    let process = Process::start("true");
    let mut silent = TcpStream::connect(process.address).await.unwrap();
    let mut begun = TcpStream::connect(process.address).await.unwrap();
    begun.write_all(&super::raw::PREFACE[..10]).await.unwrap();
    let mut silent_http = TcpStream::connect(process.http_address).await.unwrap();
    let mut idle = Connection::open(process.address, WINDOW).await;
    for stream in [&mut silent, &mut begun, &mut silent_http] {
        let mut bytes = Vec::new();
        let closed = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await;
        assert!(closed.is_ok(), "it is closed");
    }
    let stream = idle.call(DESCRIBE_NAMESPACE, &describe_request()).await;
    assert!(idle.answer(stream, PATIENCE).await.data > 0);
}
