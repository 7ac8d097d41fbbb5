//! How a run was started: a row of its own, written once.

use proto::everrow::record;
use workflow::{EventId, NamespaceId, Parent, RunId, Started, StartedAgain, Timestamp};

use super::{Decoded, optional_span, optional_uuid, required_span, span, uuid, uuid_bytes};

pub(crate) fn encode(started: &Started) -> record::Started {
    let Started {
        workflow_type,
        task_queue,
        started_at,
        execution_timeout,
        run_timeout,
        task_timeout,
        execution_expires_at,
        run_expires_at,
        first_task_backoff,
        retry_policy,
        attempt,
        cron_schedule,
        first_run_id,
        original_run_id,
        continued_from,
        parent,
        priority,
        links,
        reset_at,
        again,
    } = started;
    record::Started {
        workflow_type: workflow_type.clone(),
        task_queue: task_queue.clone(),
        started_at: started_at.0,
        execution_timeout: execution_timeout.map(span),
        run_timeout: run_timeout.map(span),
        task_timeout: Some(span(*task_timeout)),
        execution_expires_at: execution_expires_at.map(|at| at.0),
        run_expires_at: run_expires_at.map(|at| at.0),
        first_task_backoff: Some(span(*first_task_backoff)),
        retry_policy: retry_policy.clone(),
        attempt: *attempt,
        cron_schedule: cron_schedule.clone(),
        first_run_id: uuid_bytes(first_run_id.0),
        original_run_id: uuid_bytes(original_run_id.0),
        continued_from: continued_from.map(|run| uuid_bytes(run.0)).unwrap_or_default(),
        parent: parent.as_ref().map(encode_parent),
        priority: priority.clone(),
        links: links.clone(),
        reset_at: reset_at.map(|at| at.0),
        again: again.as_ref().map(encode_again),
    }
}

pub(crate) fn decode(started: record::Started) -> Decoded<Started> {
    Ok(Started {
        workflow_type: started.workflow_type,
        task_queue: started.task_queue,
        started_at: Timestamp(started.started_at),
        execution_timeout: optional_span(started.execution_timeout, "execution_timeout")?,
        run_timeout: optional_span(started.run_timeout, "run_timeout")?,
        task_timeout: required_span(started.task_timeout, "task_timeout")?,
        execution_expires_at: started.execution_expires_at.map(Timestamp),
        run_expires_at: started.run_expires_at.map(Timestamp),
        first_task_backoff: required_span(started.first_task_backoff, "first_task_backoff")?,
        retry_policy: started.retry_policy,
        attempt: started.attempt,
        cron_schedule: started.cron_schedule,
        first_run_id: RunId(uuid(&started.first_run_id, "first_run_id")?),
        original_run_id: RunId(uuid(&started.original_run_id, "original_run_id")?),
        continued_from: optional_uuid(&started.continued_from, "continued_from")?.map(RunId),
        parent: started.parent.map(decode_parent).transpose()?,
        priority: started.priority,
        links: started.links,
        reset_at: started.reset_at.map(Timestamp),
        again: started.again.map(decode_again),
    })
}

fn encode_parent(parent: &Parent) -> record::Parent {
    let Parent { namespace, namespace_id, execution, initiated_event_id, initiated_version, root } = parent;
    record::Parent {
        namespace: namespace.clone(),
        namespace_id: uuid_bytes(namespace_id.0),
        execution: Some(execution.clone()),
        initiated_event_id: initiated_event_id.0,
        initiated_version: *initiated_version,
        root: root.clone(),
    }
}

fn decode_parent(parent: record::Parent) -> Decoded<Parent> {
    Ok(Parent {
        namespace: parent.namespace,
        namespace_id: NamespaceId(uuid(&parent.namespace_id, "parent's namespace_id")?),
        execution: super::required(parent.execution, "parent's execution")?,
        initiated_event_id: EventId(parent.initiated_event_id),
        initiated_version: parent.initiated_version,
        root: parent.root,
    })
}

fn encode_again(again: &StartedAgain) -> record::StartedAgain {
    let StartedAgain { input, header, last_completion_result, memo, search_attributes } = again;
    record::StartedAgain {
        input: input.clone(),
        header: header.clone(),
        last_completion_result: last_completion_result.clone(),
        memo: memo.clone(),
        search_attributes: search_attributes.clone(),
    }
}

fn decode_again(again: record::StartedAgain) -> StartedAgain {
    StartedAgain {
        input: again.input,
        header: again.header,
        last_completion_result: again.last_completion_result,
        memo: again.memo,
        search_attributes: again.search_attributes,
    }
}
