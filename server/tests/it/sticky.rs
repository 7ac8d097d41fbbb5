//! Sticky queues: the backlog that a worker is shown, and what becomes of them when it leaves.

use std::time::{Duration, Instant};

use proto::temporal::api::enums::v1::EventType;
use proto::temporal::api::workflowservice::v1 as public;
use tokio::task::JoinHandle;

use crate::by_hand::ByHand;
use crate::commands::finish;
use crate::given::{Given, NAMESPACE, a_node, within};

/// Longer than a test: a test that waits for it has failed.
const STICKY_TIMEOUT: Duration = Duration::from_secs(3600);
/// Less than any timeout that would free a run from its sticky queue.
const AT_ONCE: Duration = Duration::from_secs(5);
const KEY: &str = "worker-instance";

/// Runs whose tasks go to one sticky queue, which is that of the first.
async fn cached_runs<const N: usize>(given: &Given, names: [&str; N]) -> [ByHand; N] {
    let runs = names.map(|name| ByHand::new(given, name));
    for run in &runs {
        run.start().await;
        let task_token = run.poll().await.task_token;
        let mut completion = run.completion(task_token);
        completion.sticky_attributes = Some(runs[0].sticky_attributes(STICKY_TIMEOUT));
        run.respond(completion).await.expect("a completion");
    }
    runs
}

fn sticky_poll(run: &ByHand, worker_instance_key: &str) -> JoinHandle<public::PollWorkflowTaskQueueResponse> {
    let mut client = run.client();
    let poll = public::PollWorkflowTaskQueueRequest {
        namespace: NAMESPACE.into(),
        task_queue: Some(run.sticky_queue()),
        identity: "worker".into(),
        worker_instance_key: worker_instance_key.into(),
        ..Default::default()
    };
    tokio::spawn(async move {
        client.poll_workflow_task_queue(within(Duration::from_secs(60), poll)).await.expect("a poll").into_inner()
    })
}

async fn leave(run: &ByHand, worker_instance_key: &str) {
    let request = public::ShutdownWorkerRequest {
        namespace: NAMESPACE.into(),
        sticky_task_queue: run.sticky_queue().name,
        identity: "worker".into(),
        worker_instance_key: worker_instance_key.into(),
        task_queue: run.name.clone(),
        ..Default::default()
    };
    run.client().shutdown_worker(request).await.expect("a goodbye");
}

async fn timed_out_tasks(run: &ByHand) -> usize {
    let events = run.events().await;
    events.iter().filter(|event| event.event_type() == EventType::WorkflowTaskTimedOut).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_is_freed_from_a_hint_of_tasks_that_are_gone() {
    let given = a_node().await;
    let [taken, over, first] = cached_runs(&given, ["taken", "over", "first"]).await;
    // The queue is polled, so what follows waits in it.
    let polling = sticky_poll(&taken, KEY);
    taken.until_polled(taken.sticky_queue()).await;
    first.signal("wake").await;
    assert!(!polling.await.unwrap().task_token.is_empty());
    taken.signal("wake").await;
    over.signal("wake").await;
    until_backlog(&taken, 2).await;
    over.terminate().await;
    let task = sticky_poll(&taken, KEY).await.unwrap();
    assert_eq!((task.workflow_execution.unwrap().workflow_id.as_str(), task.backlog_count_hint), ("taken", 1));
    // The task that was counted is gone. The worker believes in it until an answer says otherwise.
    let began = Instant::now();
    let empty = sticky_poll(&taken, KEY).await.unwrap();
    assert_eq!(empty, public::PollWorkflowTaskQueueResponse::default());
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    given.stop().await;
}

async fn until_backlog(run: &ByHand, count: i64) {
    let request = public::DescribeTaskQueueRequest {
        namespace: NAMESPACE.into(),
        task_queue: Some(run.sticky_queue()),
        report_stats: true,
        ..Default::default()
    };
    let began = Instant::now();
    loop {
        let described = run.client().describe_task_queue(request.clone()).await.expect("a description").into_inner();
        if described.stats.expect("its stats").approximate_backlog_count == count {
            return;
        }
        assert!(began.elapsed() < AT_ONCE, "the tasks wait in the sticky queue");
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_leaving_worker_had_cached_goes_on_elsewhere_at_once() {
    let given = a_node().await;
    let [run, waiting] = cached_runs(&given, ["leaving", "waiting"]).await;
    let polling = sticky_poll(&run, KEY);
    run.until_polled(run.sticky_queue()).await;
    run.signal("wake").await;
    let in_hand = polling.await.unwrap();
    waiting.signal("wake").await;
    until_backlog(&run, 1).await;
    leave(&run, KEY).await;
    // A task that waited in the sticky queue. The poll of the sticky queue named the normal one of the first run.
    let moved = run.poll().await;
    assert_eq!(moved.workflow_execution.unwrap().workflow_id, "waiting");
    assert!(moved.history.unwrap().events.len() > 5, "another worker gets the whole history");
    // What the worker has in hand it still completes, and what comes then is for others.
    run.complete_stickily(in_hand.task_token, STICKY_TIMEOUT).await;
    run.signal("wake again").await;
    let task = run.poll().await;
    run.complete(task.task_token, vec![finish("done")]).await;
    assert_eq!((timed_out_tasks(&run).await, timed_out_tasks(&waiting).await), (0, 0));
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_whose_polls_were_broken_off_before_it_said_goodbye_is_gone() {
    let given = a_node().await;
    let [run] = cached_runs(&given, ["broken off"]).await;
    let polling = sticky_poll(&run, KEY);
    run.until_polled(run.sticky_queue()).await;
    polling.abort();
    let _ = polling.await;
    leave(&run, KEY).await;
    run.signal("wake").await;
    let task = run.poll().await;
    run.complete(task.task_token, vec![finish("done")]).await;
    assert_eq!(timed_out_tasks(&run).await, 0);
    given.stop().await;
}

/// As an SDK does that does not know that its polls are answered: it goes on polling until its cache is empty.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_without_an_instance_key_drains_its_sticky_queue() {
    let given = a_node().await;
    let [run] = cached_runs(&given, ["draining"]).await;
    let first = sticky_poll(&run, "");
    run.until_polled(run.sticky_queue()).await;
    leave(&run, "").await;
    assert!(first.await.unwrap().task_token.is_empty(), "answered at once");
    for n in 0..3 {
        let polling = sticky_poll(&run, "");
        run.until_polled(run.sticky_queue()).await;
        run.signal(&format!("step {n}")).await;
        let task = polling.await.unwrap();
        assert!(task.started_event_id > 0 && task.history.unwrap().events[0].event_id > 1, "from its cache");
        run.complete_stickily(task.task_token, STICKY_TIMEOUT).await;
    }
    assert_eq!(timed_out_tasks(&run).await, 0);
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_says_that_polls_of_a_leaving_worker_are_answered() {
    let given = a_node().await;
    let request = public::DescribeNamespaceRequest { namespace: NAMESPACE.into(), ..Default::default() };
    let info = given.client().describe_namespace(request).await.unwrap().into_inner().namespace_info.unwrap();
    assert!(info.capabilities.unwrap().worker_poll_complete_on_shutdown);
    given.stop().await;
}
