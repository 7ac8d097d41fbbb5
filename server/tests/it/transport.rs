//! Between the socket and the handlers: what a connection may ask of the server, and how it ends. Clients write HTTP/2 frames
//! by hand, because a library would not misbehave.

use std::time::{Duration, Instant};

use proto::temporal::api::taskqueue::v1::TaskQueue;
use proto::temporal::api::workflowservice::v1 as public;
use tonic::Code;

use self::raw::{Connection, DESCRIBE_NAMESPACE, WINDOW};
use crate::given::{NAMESPACE, a_node};

mod raw;
mod process;
mod resets;
mod floods;
mod descriptors;
mod shutdown;

/// The bound is 300 MiB for the whole of a server that has been idle before.
const MEMORY_MIB_MAX: usize = 300;
/// Longer than anything that is waited for, on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(60);

fn poll_request(queue: &str) -> public::PollWorkflowTaskQueueRequest {
    let task_queue = Some(TaskQueue { name: queue.into(), ..Default::default() });
    public::PollWorkflowTaskQueueRequest { namespace: NAMESPACE.into(), task_queue, ..Default::default() }
}

fn describe_request() -> public::DescribeNamespaceRequest {
    public::DescribeNamespaceRequest { namespace: NAMESPACE.into(), ..Default::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_over_the_limit_is_refused_in_the_words_that_sdks_look_for_compressed_or_not() {
    use proto::temporal::api::common::v1::{Payload, Payloads};
    use tonic::codec::CompressionEncoding;
    let given = a_node().await;
    let payload = Payload { data: vec![0; 5 << 20].into(), ..Default::default() };
    let request = public::SignalWorkflowExecutionRequest {
        namespace: NAMESPACE.into(),
        input: Some(Payloads { payloads: vec![payload] }),
        ..Default::default()
    };
    let plain = given.client().signal_workflow_execution(request.clone()).await.unwrap_err();
    assert_eq!(plain.code(), Code::ResourceExhausted);
    assert!(plain.message().starts_with("grpc: received message larger than max ("), "{plain}");
    let mut compressing = given.client().send_compressed(CompressionEncoding::Gzip);
    let compressed = compressing.signal_workflow_execution(request).await.unwrap_err();
    assert_eq!(compressed.code(), Code::ResourceExhausted);
    let expected = "grpc: received message after decompression larger than max 4194304";
    assert_eq!(compressed.message(), expected);
    given.stop().await;
}

/// Clients in C++, Python and Ruby take a stream that ends with a frame of data for a broken one, whatever its head says.
#[tokio::test(flavor = "multi_thread")]
async fn results_and_errors_end_with_a_status() {
    let given = a_node().await;
    let mut connection = Connection::open(given.node.address(), WINDOW).await;
    let absent = public::DescribeNamespaceRequest { namespace: "absent".into(), ..Default::default() };
    for (request, has_data) in [(describe_request(), true), (absent, false)] {
        let stream = connection.call(DESCRIBE_NAMESPACE, &request).await;
        let answer = connection.answer(stream, PATIENCE).await;
        assert!(answer.ends_with_status && !answer.is_reset, "{answer:?}");
        assert_eq!(answer.data > 0, has_data, "{answer:?}");
    }
    given.stop().await;
}

/// Polls until the condition holds, for what the server does asynchronously.
async fn eventually<F: Future<Output = bool>>(what: &str, mut is_so: impl FnMut() -> F) {
    let began = Instant::now();
    while !is_so().await {
        assert!(began.elapsed() < PATIENCE, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_ends_with_its_callers_deadline() {
    let given = a_node().await;
    let mut connection = raw::Connection::open(given.node.address(), raw::WINDOW).await;
    // A body that never ends: nothing but the deadline ends the call.
    let stream = connection.headers(raw::DESCRIBE_NAMESPACE, &[("grpc-timeout", "100m")]).await;
    let answer = connection.answer(stream, PATIENCE).await;
    assert!(answer.data == 0 && !answer.is_reset, "an error in trailers: {answer:?}");
    drop(connection);
    given.stop().await;
}
