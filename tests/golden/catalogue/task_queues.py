"""Task queues as clients see them, and the server as a whole."""

from __future__ import annotations

from catalogue import scenario, scenario_masking
from commands import complete, schedule_activity
from stage import Stage
from worker import WorkflowTask


@scenario_masking("last_access_time", "rate_per_second", "requests_per_second")
async def task_queue_described(stage: Stage) -> None:
    """Who polls it, of which kind; and queues that nobody knows."""
    run = await stage.start()
    await (await stage.workflow_task()).complete(schedule_activity(stage.queue))
    await stage.activity_task()
    for kind in ("WORKFLOW", "ACTIVITY", "UNSPECIFIED"):
        fields = {"task_queue": {"name": stage.queue}, "task_queue_type": f"TASK_QUEUE_TYPE_{kind}"}
        stage.note(kind, await stage.silently("DescribeTaskQueue", **fields))
    stage.note("unknown", await stage.silently("DescribeTaskQueue", task_queue={"name": f"unknown-{stage.queue}"}))
    await stage.refused("DescribeTaskQueue")
    await stage.refused("DescribeTaskQueue", task_queue={"name": ""})
    await stage.refused("DescribeTaskQueue", task_queue={"name": "x" * 1001})
    await stage.refused("DescribeTaskQueue", task_queue={"name": "/_sys/queue"})
    await stage.refused("PollWorkflowTaskQueue", task_queue={"name": ""})
    await stage.refused("PollWorkflowTaskQueue", task_queue={"name": "x" * 1001})
    await stage.refused("PollActivityTaskQueue", task_queue={"name": ""})
    await stage.refused("PollWorkflowTaskQueue", task_queue={"name": stage.queue}, identity="x" * 1001)
    await stage.terminate(run)


@scenario
async def tokens_refused(stage: Stage) -> None:
    """Answers whose tokens are none, in every call that takes one."""
    for rpc in (
        "RespondWorkflowTaskCompleted",
        "RespondWorkflowTaskFailed",
        "RespondActivityTaskCompleted",
        "RespondActivityTaskFailed",
        "RespondActivityTaskCanceled",
        "RecordActivityTaskHeartbeat",
        "RespondQueryTaskCompleted",
    ):
        await stage.refused(rpc, task_token=b"")
        await stage.refused(rpc, task_token=b"nonsense")
    run = await stage.start()
    await (await stage.workflow_task()).complete(schedule_activity(stage.queue), complete())
    await stage.ended(run)


@scenario
async def activities_by_id_refused(stage: Stage) -> None:
    """Calls by id that name no activity, one that is not there, one of a run that is over."""
    run = await stage.start()
    await (await stage.workflow_task()).complete(schedule_activity(f"nobody-{stage.queue}"))
    calls = (
        "RespondActivityTaskCompletedById",
        "RespondActivityTaskFailedById",
        "RespondActivityTaskCanceledById",
        "RecordActivityTaskHeartbeatById",
    )
    for rpc in calls:
        await stage.refused(rpc, workflow_id=stage.id, activity_id="")
        await stage.refused(rpc, workflow_id="", activity_id="activity")
        await stage.refused(rpc, workflow_id=stage.id, activity_id="unknown")
    await stage.refused("RecordActivityTaskHeartbeatById", workflow_id=stage.id, activity_id="activity")
    await stage.refused("RespondActivityTaskCanceledById", workflow_id=stage.id, activity_id="activity")
    await stage.terminate(run)
    for rpc in calls:
        await stage.refused(rpc, workflow_id=stage.id, activity_id="activity")


@scenario
async def eager_start(stage: Stage) -> None:
    """A start that asks for its first workflow task: it has it, is told again, and has it not when it must wait."""
    fields = stage.start_fields(request_eager_execution=True)
    answer = await stage.call("StartWorkflowExecution", **fields)
    run = stage.watch(stage.id, answer.run_id)
    await stage.call("StartWorkflowExecution", **fields)
    await WorkflowTask(stage, answer.eager_workflow_task).complete(complete())
    await stage.ended(run)
    delayed = stage.start_fields(f"{stage.id}-delayed", request_eager_execution=True, workflow_start_delay={"seconds": 60})
    later = await stage.call("StartWorkflowExecution", **delayed)
    await stage.terminate(stage.watch(f"{stage.id}-delayed", later.run_id))
