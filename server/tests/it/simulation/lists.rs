//! Visibility when a write of a run arrives late: after its owner lost the shard and its successor wrote a later state.

use std::time::Duration;

use persistence::engine::Batch;
use persistence::model::{Fault, Faults, Model};
use proto::temporal::api::enums::v1::WorkflowExecutionStatus;

use super::deleting::{delete, start, terminate, until_gone};
use super::simulate;
use super::world::World;

/// Visibility writes take a round or two; a successor waits for the lease first.
const TOLD: Duration = Duration::from_secs(10);

/// A visibility write of a run: a batch of that table with more than a segment's announcement in it.
fn tells_of_a_run(batch: &Batch) -> bool {
    batch.partition.table.0.name == "visibility" && batch.all_puts().count() > 1
}

/// Statuses of all runs that visibility returns.
async fn listed(world: &World, query: &str) -> Vec<WorkflowExecutionStatus> {
    world.listed(query).await.iter().map(|run| run.status()).collect()
}

/// A node crashes while its visibility write of a start is in flight.
async fn a_start_on_its_way(model: &std::sync::Arc<Model>) -> World {
    let world = World::start(model, 1).await;
    model.inject_when(Fault::AppliedLater, tells_of_a_run);
    start(&world.handle().services()).await;
    while model.n_late() == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    world.crash_and_restart(model, 2).await
}

#[test]
fn a_start_that_a_deposed_owner_wrote_does_not_reopen_what_its_successor_wrote_as_closed() {
    simulate(async {
        let model = Model::with_faults(Faults::none(1));
        let world = a_start_on_its_way(&model).await;
        tokio::time::sleep(TOLD).await;
        terminate(&world.handle().services()).await;
        tokio::time::sleep(TOLD).await;
        model.deliver_late();
        assert_eq!(listed(&world, "").await, [WorkflowExecutionStatus::Terminated]);
        assert_eq!(listed(&world, "ExecutionStatus = 'Running'").await, []);
        assert_eq!(listed(&world, "CloseTime IS NOT NULL").await, [WorkflowExecutionStatus::Terminated]);
        world.stop().await;
    });
}

#[test]
fn a_start_that_a_deposed_owner_wrote_does_not_bring_back_what_its_successor_deleted() {
    simulate(async {
        let model = Model::with_faults(Faults::none(1));
        let world = a_start_on_its_way(&model).await;
        tokio::time::sleep(TOLD).await;
        delete(&world.handle().services()).await.unwrap();
        until_gone(&world).await;
        model.deliver_late();
        assert_eq!(listed(&world, "").await, []);
        world.stop().await;
    });
}
