//! A schedule's timer has fired: the schedule decides on actions, they are performed, and it records their outcomes.
//! Each step is repeatable: a repeated start finds its own run.

use std::sync::Arc;

use cluster::errors::ServiceError;
use cluster::metrics::schedules::{Scheduled, count_scheduled, observe_action_delay};
use cluster::namespaces::Namespace;
use futures_util::future::join_all;
use proto::temporal::api::common::v1::WorkflowExecution;
use proto::temporal::api::enums::v1::NamespaceState;
use scheduler::decide::{Input, Outcome};
use scheduler::schedule::{Schedule, Start, Stop};
use tracing::warn;
use workflow::ExecutionKey;

use crate::history::shard::Shard;
use crate::peers::Peers;

/// Concurrent actions of a schedule: enough to share commits, few enough to leave capacity to others.
const ACTIONS_AT_ONCE: usize = 16;

/// Performs all due actions of the schedule.
pub(in crate::history) async fn run_actions(
    shard: &Shard,
    peers: &Peers,
    key: &ExecutionKey,
) -> Result<(), ServiceError> {
    let (namespace_id, schedule_id) = (key.namespace_id, &key.workflow_id);
    let slot = shard.slots.schedule(namespace_id, schedule_id);
    let _one_at_a_time = slot.acting.lock().await;
    let (found, _) = shard.load_schedule(&slot, namespace_id, schedule_id).await?;
    let Some(mut schedule) = found.filter(|schedule| schedule.key.run_id == key.run_id) else { return Ok(()) };
    if schedule.moments.wakes_at.is_none_or(|wakes_at| wakes_at > shard.env.now()) {
        // Another timer did it, or it is no longer needed.
        return Ok(());
    }
    if !schedule.is_over {
        schedule = shard.change_schedule(&slot, (namespace_id, schedule_id), Input::Woken).await?;
    }
    let namespace = match shard.namespaces.by_id(namespace_id).await {
        Ok(namespace) => namespace,
        // Namespace removal deletes the schedules.
        Err(ServiceError::NamespaceNotFound { .. }) => return Ok(()),
        Err(error) => return Err(error),
    };
    let actor = Actor { shard, peers, namespace };
    while schedule.has_actions() && !schedule.is_over {
        let (outcomes, trouble) = actor.act(&schedule).await;
        schedule = shard.change_schedule(&slot, (namespace_id, schedule_id), Input::Acted(outcomes)).await?;
        trouble.map_or(Ok(()), Err)?;
    }
    if schedule.is_over { shard.delete_finished_schedule(&slot, &schedule).await } else { Ok(()) }
}

struct Actor<'a> {
    shard: &'a Shard,
    peers: &'a Peers,
    namespace: Arc<Namespace>,
}

impl Actor<'_> {
    /// Performs some of the decided actions. Returns their outcomes, and an error if one of them needs a retry.
    async fn act(&self, schedule: &Arc<Schedule>) -> (Vec<Outcome>, Option<ServiceError>) {
        let starts = schedule.work.starting.iter().take(ACTIONS_AT_ONCE).map(|start| self.start(schedule, start));
        let started = join_all(starts).await;
        let stops = schedule.stops().take(ACTIONS_AT_ONCE).map(|(run, stop)| self.stop(schedule, run, stop));
        let stopped = join_all(stops).await;
        let mut outcomes = Vec::new();
        let mut trouble = None;
        for outcome in started.into_iter().chain(stopped) {
            match outcome {
                Ok(outcome) => outcomes.push(outcome),
                Err(error) => trouble = Some(error),
            }
        }
        (outcomes, trouble)
    }

    async fn start(&self, schedule: &Schedule, start: &Start) -> Result<Outcome, ServiceError> {
        let id = start.id;
        let Some(ask) = schedule.start_request(start, &self.namespace.name) else {
            return Ok(Self::failed(start));
        };
        let workflow_id = schedule.workflow_id(start);
        let error = match self.ask_to_start(ask).await {
            Ok(run_id) => {
                let execution = WorkflowExecution { workflow_id, run_id };
                let at = self.shard.env.now();
                if !start.is_manual {
                    observe_action_delay(at.since(start.acts_at));
                }
                return Ok(Outcome::Started { id, execution, at });
            }
            Err(error) => error,
        };
        // A run of the same id that is being deleted is soon gone.
        let may_mend = error.is_transient() || matches!(error, ServiceError::NotFound(_));
        if may_mend && self.shard.env.now() < start.gives_up_at {
            return Err(ServiceError::Unavailable(error.to_string()));
        }
        warn!(schedule = %schedule.key.schedule_id, workflow_id, %error, "scheduled start failed; not retrying");
        Ok(Self::failed(start))
    }

    fn failed(start: &Start) -> Outcome {
        count_scheduled(Scheduled::ActionError, 1);
        Outcome::StartFailed { id: start.id }
    }

    async fn ask_to_start(
        &self,
        ask: proto::everrow::history::StartWorkflowExecutionRequest,
    ) -> Result<String, ServiceError> {
        // As for clients: a namespace that is deprecated or deleted starts nothing new.
        if self.namespace.state != NamespaceState::Registered {
            let Namespace { name, state, .. } = &*self.namespace;
            let (namespace, allowed) = (name.clone(), vec![NamespaceState::Registered]);
            return Err(ServiceError::NamespaceInvalidState { namespace, state: *state, allowed });
        }
        Ok(self.peers.history()?.start_workflow_execution(ask).await?.run_id)
    }

    async fn stop(
        &self,
        schedule: &Schedule,
        execution: &WorkflowExecution,
        stop: Stop,
    ) -> Result<Outcome, ServiceError> {
        let history = self.peers.history()?;
        let asked = match stop {
            Stop::Cancel => {
                let ask = schedule.cancel_request(execution, &self.namespace.name);
                history.request_cancel_workflow_execution(ask).await.map(|_| ())
            }
            Stop::Terminate => {
                let ask = schedule.terminate_request(execution, &self.namespace.name);
                history.terminate_workflow_execution(ask).await.map(|_| ())
            }
        };
        match asked {
            Err(error) if error.is_transient() => Err(error),
            // A run that is closed, or is another's by now, needs no request; its close is reported separately.
            Ok(()) | Err(_) => Ok(Outcome::StopAsked { execution: execution.clone(), stop }),
        }
    }
}
