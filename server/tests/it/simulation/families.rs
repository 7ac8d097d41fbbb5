//! Families under faults: parents with children, which all signal one collector. Whatever the store does and however
//! often the node dies, no child is lost or doubled, and the signals of each parent arrive once and in order.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use persistence::engine::Engine;
use persistence::error::StoreError;
use persistence::model::Model;
use persistence::stores::Stores;
use proto::everrow::{history as request, record};
use proto::temporal::api::command::v1::command::Attributes as CommandAttributes;
use proto::temporal::api::command::v1::{
    Command, SignalExternalWorkflowExecutionCommandAttributes, StartChildWorkflowExecutionCommandAttributes,
};
use proto::temporal::api::common::v1::WorkflowType;
use proto::temporal::api::enums::v1::{CommandType, NamespaceState, WorkflowExecutionStatus};
use proto::temporal::api::history::v1::HistoryEvent;
use proto::temporal::api::history::v1::history_event::Attributes;
use proto::temporal::api::workflowservice::v1 as public;
use tokio::task::JoinSet;
use uuid::Uuid;
use workflow::NamespaceId;

use super::client::{self, Sent, SentTo, pause_after};
use super::worker::{command, finish, text};
use super::world::{Handle, NAMESPACE_ID, World, execution};
use super::{all_faults, for_seeds, simulate};

const N_FAMILIES: usize = 6;
const N_CHILDREN: usize = 4;
const N_NEWS: usize = 5;
const N_CRASHES: u64 = 4;
const N_RESETS: u64 = 4;
const PARENT: &str = "parent";
const COLLECTOR: &str = "collector";

fn count(events: &[HistoryEvent], is_it: fn(&Attributes) -> bool) -> usize {
    events.iter().filter_map(|event| event.attributes.as_ref()).filter(|what| is_it(what)).count()
}

/// A run of the workflow whose commands are decided on here.
pub(super) fn is_parent(events: &[HistoryEvent]) -> bool {
    let first = events.first().and_then(|event| event.attributes.as_ref());
    matches!(first, Some(Attributes::WorkflowExecutionStartedEventAttributes(started))
        if started.workflow_type.as_ref().is_some_and(|kind| kind.name == PARENT))
}

pub(super) fn decide(events: &[HistoryEvent]) -> Vec<Command> {
    let Some(Attributes::WorkflowExecutionStartedEventAttributes(started)) = &events[0].attributes else {
        panic!("history begins with the start")
    };
    if count(events, |what| matches!(what, Attributes::StartChildWorkflowExecutionInitiatedEventAttributes(_))) == 0 {
        let children = (0..N_CHILDREN).map(|n| start_child(&format!("{}-{n}", started.workflow_id)));
        return children.chain((0..N_NEWS).map(tell)).collect();
    }
    let n_ended = count(events, |what| matches!(what, Attributes::ChildWorkflowExecutionCompletedEventAttributes(_)));
    let n_told = count(events, |what| matches!(what, Attributes::ExternalWorkflowExecutionSignaledEventAttributes(_)));
    if n_ended < N_CHILDREN || n_told < N_NEWS { Vec::new() } else { vec![finish()] }
}

fn start_child(workflow_id: &str) -> Command {
    let attributes = StartChildWorkflowExecutionCommandAttributes {
        workflow_id: workflow_id.into(),
        workflow_type: Some(WorkflowType { name: "simulated".into() }),
        input: Some(text("0 0")),
        ..Default::default()
    };
    let attributes = CommandAttributes::StartChildWorkflowExecutionCommandAttributes(attributes);
    command(CommandType::StartChildWorkflowExecution, attributes)
}

fn tell(n: usize) -> Command {
    let attributes = SignalExternalWorkflowExecutionCommandAttributes {
        execution: Some(execution(COLLECTOR)),
        signal_name: n.to_string(),
        ..Default::default()
    };
    let attributes = CommandAttributes::SignalExternalWorkflowExecutionCommandAttributes(attributes);
    command(CommandType::SignalExternalWorkflowExecution, attributes)
}

/// Commands about other workflows need a namespace that has a name.
pub(super) async fn make_namespace(model: &Arc<Model>) {
    let namespaces = Stores::new(Arc::clone(model) as Arc<dyn Engine>).namespaces;
    let id = NamespaceId(Uuid::parse_str(NAMESPACE_ID).unwrap());
    // Longer than the simulation lasts: the runs are looked at when all is over.
    let retention = Some(prost_types::Duration { seconds: 30 * 24 * 60 * 60, nanos: 0 });
    let (name, state) = ("simulated".into(), NamespaceState::Registered.into());
    let record = record::Namespace { name, state, retention, ..Default::default() };
    loop {
        match namespaces.create(id, record.clone()).await {
            Ok(_) | Err(StoreError::Refused(_)) => return,
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

async fn start(world: &World, workflow_id: &str, kind: &str, input: &str) -> (String, SentTo) {
    let run_id = client::start(&world.handle(), workflow_id, kind, input).await;
    (workflow_id.to_owned(), SentTo { run_id, n_activities: 0, signals: Vec::new() })
}

async fn families_under_faults(seed: u64) -> usize {
    let model = Model::with_faults(all_faults(seed));
    make_namespace(&model).await;
    let mut world = World::start(&model, seed).await;
    let mut sent = Sent::default();
    sent.workflows.extend([start(&world, COLLECTOR, "simulated", &format!("0 {}", N_FAMILIES * N_NEWS)).await]);
    for n in 0..N_FAMILIES {
        sent.workflows.extend([start(&world, &format!("family-{n}"), PARENT, "").await]);
    }
    for crash in 1..=N_CRASHES {
        tokio::time::sleep(Duration::from_millis(61 * crash)).await;
        world = world.crash_and_restart(&model, seed + crash).await;
    }
    model.stop_faults();
    world.all_closed(&sent).await;
    world.stop().await;
    let successor = World::start(&model, seed + 100).await;
    for n in 0..N_FAMILIES {
        check_family(&successor, &format!("family-{n}")).await;
    }
    check_collector(&successor).await;
    successor.stop().await;
    0
}

async fn check_family(world: &World, parent: &str) {
    let events = world.history(parent).await;
    let mut runs = BTreeMap::new();
    let mut ended = BTreeMap::new();
    for event in &events {
        match event.attributes.as_ref().unwrap() {
            Attributes::ChildWorkflowExecutionStartedEventAttributes(start) => {
                let child = start.workflow_execution.clone().unwrap();
                assert!(
                    runs.insert(child.workflow_id.clone(), child.run_id).is_none(),
                    "{parent}: a child started twice"
                );
            }
            Attributes::ChildWorkflowExecutionCompletedEventAttributes(end) => {
                let child = end.workflow_execution.clone().unwrap();
                assert!(
                    ended.insert(child.workflow_id.clone(), child.run_id).is_none(),
                    "{parent}: a child ended twice"
                );
            }
            Attributes::StartChildWorkflowExecutionFailedEventAttributes(failed) => panic!("{parent}: {failed:?}"),
            _ => {}
        }
    }
    assert_eq!(runs.len(), N_CHILDREN, "{parent}: a child was lost");
    assert_eq!(runs, ended, "{parent}: the run that started is the run that ended");
    for (child, run_id) in runs {
        let found = world.describe(&child).await;
        assert_eq!(found.status(), WorkflowExecutionStatus::Completed, "{child}");
        assert_eq!(found.execution.unwrap().run_id, run_id, "{child}: another run took its place");
    }
}

async fn check_collector(world: &World) {
    let mut news: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for event in world.history(COLLECTOR).await {
        if let Some(Attributes::WorkflowExecutionSignaledEventAttributes(signal)) = event.attributes {
            let sender = signal.external_workflow_execution.unwrap().workflow_id;
            news.entry(sender).or_default().push(signal.signal_name);
        }
    }
    let expected: Vec<String> = (0..N_NEWS).map(|n| n.to_string()).collect();
    assert_eq!(news.len(), N_FAMILIES);
    for (sender, told) in news {
        assert_eq!(told, expected, "the news of {sender}");
    }
}

/// Resets a parent to its newest workflow task that is done, if its children were initiated before that; so that the new
/// run meets whatever is on its way between them and the old one.
async fn reset(node: &Handle, parent: &str, request_id: String) {
    let events = client::history(node, execution(parent)).await;
    let is_task =
        |event: &&HistoryEvent| matches!(event.attributes, Some(Attributes::WorkflowTaskCompletedEventAttributes(_)));
    let is_child =
        |what: &Attributes| matches!(what, Attributes::StartChildWorkflowExecutionInitiatedEventAttributes(_));
    let Some(task) = events.iter().rfind(is_task) else { return };
    let before = usize::try_from(task.event_id).unwrap();
    if count(&events[..before], is_child) < N_CHILDREN {
        return;
    }
    let reset = public::ResetWorkflowExecutionRequest {
        workflow_execution: Some(execution(parent)),
        workflow_task_finish_event_id: task.event_id,
        request_id,
        ..Default::default()
    };
    let reset = request::ResetWorkflowExecutionRequest { namespace_id: NAMESPACE_ID.into(), request: Some(reset) };
    while let Err(error) = node.services().history.reset_workflow_execution(reset.clone()).await {
        pause_after(&error).await;
    }
}

async fn resets_under_faults(seed: u64) -> usize {
    let model = Model::with_faults(all_faults(seed));
    make_namespace(&model).await;
    let mut world = World::start(&model, seed).await;
    let mut sent = Sent::default();
    sent.workflows.extend([start(&world, COLLECTOR, "simulated", &format!("0 {}", N_FAMILIES * N_NEWS)).await]);
    let mut resets = JoinSet::new();
    for n in 0..N_FAMILIES {
        let parent = format!("family-{n}");
        sent.workflows.extend([start(&world, &parent, PARENT, "").await]);
        let node = world.handle();
        resets.spawn(async move {
            for round in 0..N_RESETS {
                tokio::time::sleep(Duration::from_millis(7 * (seed % 11) + 13 * round)).await;
                reset(&node, &parent, format!("{parent}-reset-{round}")).await;
            }
        });
    }
    for crash in 1..=N_CRASHES {
        tokio::time::sleep(Duration::from_millis(61 * crash)).await;
        world = world.crash_and_restart(&model, seed + crash).await;
    }
    resets.join_all().await;
    model.stop_faults();
    world.all_closed(&sent).await;
    for n in 0..N_FAMILIES {
        check_family(&world, &format!("family-{n}")).await;
    }
    check_collector(&world).await;
    world.stop().await;
    0
}

#[test]
fn a_parent_that_is_reset_keeps_its_children_and_repeats_no_news() {
    for_seeds(5100..5120, |seed| simulate(resets_under_faults(seed)));
}

#[test]
fn no_child_is_lost_or_doubled_and_news_arrive_once_and_in_order() {
    for_seeds(5000..5020, |seed| simulate(families_under_faults(seed)));
}
