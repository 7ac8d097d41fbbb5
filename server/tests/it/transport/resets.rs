//! Requests that are cancelled before they are accepted.

use super::raw::{Connection, DESCRIBE_NAMESPACE, WINDOW};
use super::*;
use crate::transport::process::Process;

/// As many as a worker with many slots has under way.
const POLLS: usize = 400;
const CANCELLED: usize = 600;

#[tokio::test(flavor = "multi_thread")]
async fn long_polls_survive_a_burst_of_cancelled_requests_on_their_connection() {
    let given = a_node().await;
    let mut connection = Connection::open(given.node.address(), WINDOW).await;
    for _ in 0..POLLS {
        connection.call("PollWorkflowTaskQueue", &poll_request("resets")).await;
    }
    for _ in 0..5 {
        connection.cancelled_calls(DESCRIBE_NAMESPACE, CANCELLED).await.unwrap();
    }
    let stream = connection.call(DESCRIBE_NAMESPACE, &describe_request()).await;
    let answer = connection.answer(stream, PATIENCE).await;
    assert!(answer.data > 0 && !answer.is_reset, "{answer:?}");
    assert_eq!(connection.unexpected(), Vec::<u32>::new(), "every poll still waits");
    drop(connection);
    given.stop().await;
}

/// Each of these is an open stream for a moment; all of them at once would be gigabytes.
const FLOOD: usize = 300_000;
const BATCH: usize = 30_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_resets_costs_little_memory_and_keeps_nobody_out() {
    let process = Process::start("true");
    let mut flood = Connection::open(process.address, WINDOW).await;
    let mut is_cut_off = false;
    for _ in 0..FLOOD / BATCH {
        is_cut_off |= flood.cancelled_calls(DESCRIBE_NAMESPACE, BATCH).await.is_err();
    }
    let mut other = Connection::open(process.address, WINDOW).await;
    let stream = other.call("GetSystemInfo", &public::GetSystemInfoRequest {}).await;
    assert!(other.answer(stream, PATIENCE).await.data > 0);
    let memory_mib = process.memory_mib();
    assert!(memory_mib < MEMORY_MIB_MAX, "{memory_mib} MiB; cut off: {is_cut_off}");
}
