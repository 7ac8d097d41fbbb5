//! History over gRPC while a run goes on: long polls, the close event alone, chains of runs, and tokens that survive a
//! node but not their run.

use std::time::{Duration, Instant};

use bytes::Bytes;
use cluster::env::Env;
use prost::Message;
use proto::history::History;
use proto::temporal::api::command::v1::command::Attributes as CommandAttributes;
use proto::temporal::api::command::v1::{Command, ContinueAsNewWorkflowExecutionCommandAttributes};
use proto::temporal::api::common::v1::{RetryPolicy, WorkflowExecution};
use proto::temporal::api::enums::v1::{CommandType, EncodingType, EventType, HistoryEventFilterType};
use proto::temporal::api::history::v1::HistoryEvent;
use proto::temporal::api::history::v1::history_event::Attributes;
use proto::temporal::api::workflowservice::v1 as public;
use server::node::Node;
use tonic::{Code, Status};

use crate::by_hand::ByHand;
use crate::commands::{fail, finish};
use crate::given::{Given, NAMESPACE, a_node, a_node_in, config, connect, refused, register};

/// Events of a page unless fewer are asked for, and at most.
const PAGE: usize = 256;

struct Page {
    events: Vec<HistoryEvent>,
    token: Bytes,
}

impl Page {
    fn ids(&self) -> Vec<i64> {
        self.events.iter().map(|event| event.event_id).collect()
    }
}

fn ask(run: &ByHand, token: Bytes) -> public::GetWorkflowExecutionHistoryRequest {
    public::GetWorkflowExecutionHistoryRequest {
        namespace: NAMESPACE.into(),
        execution: Some(run.execution()),
        next_page_token: token,
        ..Default::default()
    }
}

fn waiting(run: &ByHand, token: Bytes) -> public::GetWorkflowExecutionHistoryRequest {
    public::GetWorkflowExecutionHistoryRequest { wait_new_event: true, ..ask(run, token) }
}

fn closing(run: &ByHand, token: Bytes) -> public::GetWorkflowExecutionHistoryRequest {
    public::GetWorkflowExecutionHistoryRequest {
        history_event_filter_type: HistoryEventFilterType::CloseEvent.into(),
        ..waiting(run, token)
    }
}

async fn get(run: &ByHand, request: public::GetWorkflowExecutionHistoryRequest) -> Result<Page, Status> {
    let page = run.client().get_workflow_execution_history(request).await?.into_inner();
    assert!(page.raw_history.is_empty() && !page.archived);
    Ok(Page { events: page.history.unwrap_or_default().events, token: page.next_page_token })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_poll_brings_each_new_event_and_ends_with_the_run() {
    let given = a_node().await;
    let run = ByHand::new(&given, "followed");
    run.start().await;
    let first = get(&run, waiting(&run, Bytes::new())).await.unwrap();
    assert_eq!(first.ids(), [1, 2]);
    let poll = tokio::spawn({
        let (run, request) = (run.clone(), waiting(&run, first.token));
        async move { get(&run, request).await.unwrap() }
    });
    run.signal("news").await;
    let second = poll.await.unwrap();
    assert_eq!(second.ids(), [3]);
    run.terminate().await;
    let last = get(&run, waiting(&run, second.token)).await.unwrap();
    assert_eq!((last.ids(), last.token.is_empty()), (vec![4], true));
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_close_event_is_waited_for_and_comes_alone() {
    let given = a_node().await;
    let run = ByHand::new(&given, "closing");
    run.begin().await;
    let poll = tokio::spawn({
        let run = run.clone();
        async move { get(&run, closing(&run, Bytes::new())).await.unwrap() }
    });
    run.signal("not yet").await;
    let task = run.poll().await;
    assert!(!poll.is_finished());
    run.complete(task.task_token, vec![finish("done")]).await;
    let page = poll.await.unwrap();
    assert_eq!(page.events[0].event_type(), EventType::WorkflowExecutionCompleted);
    assert_eq!((page.events.len(), page.token.is_empty()), (1, true));
    let began = Instant::now();
    let again = get(&run, closing(&run, Bytes::new())).await.unwrap();
    assert_eq!((again.events, began.elapsed() < Duration::from_secs(5)), (page.events, true));
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_close_event_names_the_run_that_follows() {
    let given = a_node().await;
    let run = ByHand::new(&given, "chain");
    let first_run_id = run.start().await;
    let task = run.poll().await;
    let what = ContinueAsNewWorkflowExecutionCommandAttributes {
        workflow_type: task.workflow_type,
        task_queue: Some(run.queue()),
        ..Default::default()
    };
    let command = Command {
        command_type: CommandType::ContinueAsNewWorkflowExecution.into(),
        attributes: Some(CommandAttributes::ContinueAsNewWorkflowExecutionCommandAttributes(what)),
        ..Default::default()
    };
    run.complete(task.task_token, vec![command]).await;
    let of = |run_id: String| Some(WorkflowExecution { run_id, ..run.execution() });
    let request = public::GetWorkflowExecutionHistoryRequest {
        execution: of(first_run_id.clone()),
        ..closing(&run, Bytes::new())
    };
    let closed = get(&run, request).await.unwrap();
    let Some(Attributes::WorkflowExecutionContinuedAsNewEventAttributes(next)) = &closed.events[0].attributes else {
        panic!("{:?}", closed.events)
    };
    let next_run_id = next.new_execution_run_id.clone();
    assert_ne!(next_run_id, first_run_id);
    let current = get(&run, waiting(&run, Bytes::new())).await.unwrap();
    let Some(Attributes::WorkflowExecutionStartedEventAttributes(first)) = &current.events[0].attributes else {
        panic!("{:?}", current.events)
    };
    assert_eq!(first.continued_execution_run_id, first_run_id, "without a run id the current run is meant");
    // The token was made for the current run.
    let request =
        public::GetWorkflowExecutionHistoryRequest { execution: of(first_run_id), ..ask(&run, current.token.clone()) };
    let message = "RunId in the request does not match the NextPageToken.";
    refused(get(&run, request).await.map(|_| ()), Code::InvalidArgument, message);
    let request = public::GetWorkflowExecutionHistoryRequest { execution: of(next_run_id), ..ask(&run, current.token) };
    get(&run, request).await.unwrap();
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_has_256_events_whatever_more_is_asked_for() {
    let given = a_node().await;
    let run = ByHand::new(&given, "long");
    run.start().await;
    for _ in 0..PAGE {
        run.signal("one more").await;
    }
    for maximum_page_size in [0, -1, 256, 100_000] {
        let request = public::GetWorkflowExecutionHistoryRequest { maximum_page_size, ..ask(&run, Bytes::new()) };
        let page = get(&run, request).await.unwrap();
        // The first two stand in one batch, and a page ends where a batch does.
        assert!((PAGE..=PAGE + 1).contains(&page.events.len()), "{maximum_page_size}: {}", page.events.len());
        assert!(!page.token.is_empty());
    }
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_outlive_the_node_that_made_them() {
    let given = a_node().await;
    let run = ByHand::new(&given, "lasting");
    run.start().await;
    for _ in 0..4 {
        run.signal("one more").await;
    }
    let paged = public::GetWorkflowExecutionHistoryRequest { maximum_page_size: 2, ..ask(&run, Bytes::new()) };
    let forwards = get(&run, paged.clone()).await.unwrap();
    let backwards = public::GetWorkflowExecutionHistoryReverseRequest {
        namespace: NAMESPACE.into(),
        execution: Some(run.execution()),
        maximum_page_size: 2,
        ..Default::default()
    };
    let first = run.client().get_workflow_execution_history_reverse(backwards.clone()).await.unwrap().into_inner();
    let followed = get(&run, waiting(&run, Bytes::new())).await.unwrap();
    let task_token = run.poll().await.task_token;

    let given = a_node_in(given.stop().await).await;
    let run = ByHand::new(&given, "lasting");
    let request = public::GetWorkflowExecutionHistoryRequest { next_page_token: forwards.token, ..paged };
    assert_eq!(get(&run, request).await.unwrap().ids(), [3, 4]);
    let request =
        public::GetWorkflowExecutionHistoryReverseRequest { next_page_token: first.next_page_token, ..backwards };
    let second = run.client().get_workflow_execution_history_reverse(request).await.unwrap().into_inner();
    assert_eq!(second.history.unwrap().events.iter().map(|event| event.event_id).collect::<Vec<_>>(), [4, 3]);
    assert_eq!(get(&run, waiting(&run, followed.token)).await.unwrap().ids(), [7], "the start of the task");
    run.complete(task_token, Vec::new()).await;
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_that_is_not_written_is_shown_to_programs_and_not_to_people() {
    let given = a_node().await;
    let run = ByHand::new(&given, "failing");
    run.start().await;
    let failed = public::RespondWorkflowTaskFailedRequest {
        namespace: NAMESPACE.into(),
        task_token: run.poll().await.task_token,
        ..Default::default()
    };
    run.client().respond_workflow_task_failed(failed).await.unwrap();
    let shown = get(&run, ask(&run, Bytes::new())).await.unwrap();
    assert_eq!(shown.ids(), [1, 2, 3, 4, 5]);
    let Some(Attributes::WorkflowTaskScheduledEventAttributes(again)) = &shown.events[4].attributes else { panic!() };
    assert_eq!(again.attempt, 2);
    run.poll().await;
    let shown = get(&run, ask(&run, Bytes::new())).await.unwrap();
    assert_eq!(shown.ids(), [1, 2, 3, 4, 5, 6]);
    let Some(Attributes::WorkflowTaskStartedEventAttributes(begun)) = &shown.events[5].attributes else { panic!() };
    assert_eq!(begun.identity, "", "it is the worker's once it has completed");
    for viewer in ["temporal-cli", "temporal-ui"] {
        let mut request = tonic::Request::new(ask(&run, Bytes::new()));
        request.metadata_mut().insert("client-name", viewer.parse().unwrap());
        let page = run.client().get_workflow_execution_history(request).await.unwrap().into_inner();
        assert_eq!(page.history.unwrap_or_default().events, shown.events[..4], "{viewer}");
    }
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_worth_nothing_in_another_namespace() {
    let given = a_node().await;
    given.client().register_namespace(register("elsewhere")).await.unwrap();
    let run = ByHand::new(&given, "same name");
    run.start().await;
    let elsewhere = public::StartWorkflowExecutionRequest { namespace: "elsewhere".into(), ..run.start_request() };
    run.client().start_workflow_execution(elsewhere).await.unwrap();
    let page = get(&run, waiting(&run, Bytes::new())).await.unwrap();
    let task_token = run.poll().await.task_token;
    let stolen =
        public::GetWorkflowExecutionHistoryRequest { namespace: "elsewhere".into(), ..ask(&run, page.token.clone()) };
    refused(get(&run, stolen).await.map(|_| ()), Code::InvalidArgument, "Invalid NextPageToken.");
    let stolen = public::GetWorkflowExecutionHistoryReverseRequest {
        namespace: "elsewhere".into(),
        execution: Some(run.execution()),
        next_page_token: page.token,
        ..Default::default()
    };
    let answer = run.client().get_workflow_execution_history_reverse(stolen).await;
    refused(answer, Code::InvalidArgument, "Invalid NextPageToken.");
    let stolen =
        public::RespondWorkflowTaskCompletedRequest { namespace: "elsewhere".into(), ..run.completion(task_token) };
    let message = "Operation requested with a token from a different namespace.";
    refused(run.respond(stolen).await, Code::InvalidArgument, message);
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_history_is_told_as_bytes_where_that_is_wanted() {
    let given = a_node().await;
    let run = ByHand::new(&given, "raw");
    run.begin().await;
    let events = run.events().await;
    let directory = given.stop().await;
    let mut config = config(&directory);
    config.history.raw_history = true;
    let node = Node::start(config, Env::system()).await.unwrap();
    let channel = connect(&node).await;
    let given = Given { node, channel, directory };
    let run = ByHand::new(&given, "raw");
    let page = run.client().get_workflow_execution_history(ask(&run, Bytes::new())).await.unwrap().into_inner();
    assert_eq!(page.history, Some(History::default()));
    let [blob] = page.raw_history.as_slice() else { panic!("{:?}", page.raw_history) };
    assert_eq!(blob.encoding_type(), EncodingType::Proto3);
    assert_eq!(History::decode(blob.data.clone()).unwrap().events, events);
    given.stop().await;
}

/// Page tokens are untrusted input.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_token_that_was_tampered_with_is_never_our_mistake() {
    let given = a_node().await;
    let run = ByHand::new(&given, "tampered");
    run.start().await;
    run.signal("a").await;
    run.signal("b").await;
    let page = public::GetWorkflowExecutionHistoryRequest { maximum_page_size: 1, ..ask(&run, Bytes::new()) };
    let token = get(&run, page).await.expect("a page").token;
    assert!(!token.is_empty(), "there is more");
    for at in 0..token.len() {
        for byte in [0x00, 0x7f, 0x80, 0xff, token[at] ^ 1] {
            let mut tampered = token.to_vec();
            tampered[at] = byte;
            let request =
                public::GetWorkflowExecutionHistoryRequest { maximum_page_size: 1, ..ask(&run, tampered.into()) };
            let Err(status) = run.client().get_workflow_execution_history(request).await else { continue };
            assert!(
                matches!(status.code(), Code::InvalidArgument | Code::NotFound),
                "byte {at} as {byte:#x}: {status:?}"
            );
        }
        let cut = public::GetWorkflowExecutionHistoryReverseRequest {
            namespace: NAMESPACE.into(),
            execution: Some(run.execution()),
            next_page_token: token.slice(..at),
            ..Default::default()
        };
        let Err(status) = run.client().get_workflow_execution_history_reverse(cut).await else { continue };
        assert!(matches!(status.code(), Code::InvalidArgument | Code::NotFound), "cut at {at}: {status:?}");
    }
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
#[expect(deprecated, reason = "clients that do not follow runs know the older fields")]
async fn a_client_that_does_not_follow_runs_is_shown_a_retry_as_continued_as_new() {
    let given = a_node().await;
    let run = ByHand::new(&given, "retried");
    let start = public::StartWorkflowExecutionRequest {
        retry_policy: Some(RetryPolicy { maximum_attempts: 2, ..Default::default() }),
        ..run.start_request()
    };
    let first = run.client().start_workflow_execution(start).await.expect("a start").into_inner().run_id;
    let execution = Some(WorkflowExecution { run_id: first, ..run.execution() });
    let of_first =
        || public::GetWorkflowExecutionHistoryRequest { execution: execution.clone(), ..closing(&run, Bytes::new()) };
    let waiting = tokio::spawn({
        let (run, request) = (run.clone(), of_first());
        async move { get(&run, request).await.unwrap() }
    });
    run.work(vec![fail("boom")]).await;
    let shown = waiting.await.unwrap().events.remove(0);
    let Some(Attributes::WorkflowExecutionContinuedAsNewEventAttributes(next)) = &shown.attributes else {
        panic!("{shown:?}")
    };
    assert_eq!(next.failure.as_ref().expect("why").message, "boom");

    let of = |features: &'static str, request| {
        let mut request = tonic::Request::new(request);
        request.metadata_mut().insert("supported-features", features.parse().unwrap());
        request
    };
    for (features, is_shown) in [("follows-next-run-id", true), ("a,follows-next-run-id,b", true), ("follows", false)] {
        let page = run.client().get_workflow_execution_history(of(features, of_first())).await.unwrap().into_inner();
        let event = page.history.unwrap_or_default().events.remove(0);
        assert_eq!(event.event_type() == EventType::WorkflowExecutionFailed, is_shown, "{features}");
        assert_eq!((event.event_id, event.event_time), (shown.event_id, shown.event_time));
    }
    // A listing of all events shows what was recorded, to everybody.
    let all = public::GetWorkflowExecutionHistoryRequest { execution, ..ask(&run, Bytes::new()) };
    let all = get(&run, all).await.unwrap();
    assert_eq!(all.events.last().unwrap().event_type(), EventType::WorkflowExecutionFailed);
    given.stop().await;
}
