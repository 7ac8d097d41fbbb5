//! A run whose rows are damaged: it is left alone, and nothing else suffers.

use std::sync::Arc;
use std::time::Duration;

use cluster::errors::ServiceError;
use persistence::engine::{Batch, Engine, Partition};
use persistence::model::Model;
use persistence::stores::Stores;
use persistence::stores::executions::DeadLetter;
use persistence::stores::queues::QueueKey;
use persistence::table::Value;
use persistence::tables::EXECUTIONS;
use proto::everrow::history::StartWorkflowExecutionRequest;
use proto::temporal::api::common::v1::WorkflowType;
use proto::temporal::api::enums::v1::WorkflowExecutionStatus;
use proto::temporal::api::taskqueue::v1::TaskQueue;
use proto::temporal::api::workflowservice::v1 as public;

use super::simulate;
use super::world::{NAMESPACE_ID, World};

/// What `RowKind::Run` is in the `kind` column.
const RUN: Value = Value::Int(2);

/// Overwrites the state of one run with what does not decode.
async fn damage(model: &Arc<Model>, workflow_id: &str) -> i32 {
    for shard in 1..=2 {
        let partition = Partition::new(&EXECUTIONS, vec![Value::Int(shard)]);
        let (_, rows) = model.dump(&partition);
        let is_state =
            |key: &[Value]| key[0] == RUN && key[2] == Value::from(workflow_id) && key[4] == Value::Bigint(0);
        if let Some(mut row) = rows.into_iter().find(|row| is_state(&row.key)) {
            row.values[1] = Value::Blob(bytes::Bytes::from_static(b"\xff\xff\xff"));
            let mut batch = Batch::new(partition);
            batch.puts.push(row);
            model.write(batch).await.unwrap();
            return shard;
        }
    }
    panic!("{workflow_id} has no row")
}

/// A run that nobody works on; a timer ends it after a minute.
async fn start(world: &World, workflow_id: &str) {
    let request = public::StartWorkflowExecutionRequest {
        workflow_id: workflow_id.into(),
        workflow_type: Some(WorkflowType { name: "forgotten".into() }),
        task_queue: Some(TaskQueue { name: "nobody polls".into(), ..Default::default() }),
        workflow_run_timeout: Some(prost_types::Duration { seconds: 60, nanos: 0 }),
        request_id: workflow_id.into(),
        ..Default::default()
    };
    let request = StartWorkflowExecutionRequest {
        namespace_id: NAMESPACE_ID.into(),
        request: Some(request),
        ..Default::default()
    };
    world.handle().services().history.start_workflow_execution(request).await.unwrap();
}

/// The first timer in the dead-letter queue, which also has the run's visibility task.
async fn first_dead_timer(model: &Arc<Model>, shard: i32) -> DeadLetter {
    let queues = Stores::new(Arc::clone(model) as Arc<dyn Engine>).queues;
    let queue = QueueKey { queue_type: 1, name: format!("shard-{shard}").into() };
    loop {
        let page = queues.read(&queue, 0, 10).await.unwrap();
        let mut letters = page.messages.iter().map(|stored| DeadLetter::from_message(&stored.message).unwrap());
        if let Some(timer) = letters.find(|letter| matches!(letter, DeadLetter::Timer { .. })) {
            return timer;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[test]
fn a_task_of_a_damaged_run_is_dead_lettered_and_the_others_go_on() {
    simulate(async {
        let model = Model::new();
        let world = World::start(&model, 1).await;
        start(&world, "damaged").await;
        start(&world, "sound").await;
        world.stop().await;
        let shard = damage(&model, "damaged").await;

        let world = World::start(&model, 2).await;
        let letter = tokio::time::timeout(Duration::from_secs(600), first_dead_timer(&model, shard)).await;
        let letter = letter.expect("the task is put aside");
        assert!(matches!(letter, DeadLetter::Timer { ref key, .. } if &*key.workflow_id == "damaged"), "{letter:?}");
        let damaged = world.try_describe("damaged").await;
        assert!(matches!(damaged, Err(ServiceError::DataLoss(_))), "a damaged run is told to be one: {damaged:?}");
        assert_eq!(world.describe("sound").await.status(), WorkflowExecutionStatus::TimedOut);
        world.stop().await;
    });
}
