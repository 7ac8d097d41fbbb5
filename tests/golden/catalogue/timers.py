"""Timers, markers, and what a run keeps of itself: search attributes and memo."""

from __future__ import annotations

from catalogue import scenario
from commands import NEVER, SECOND, SHORTLY, cancel_timer, command, complete, failure, input_of, marker, payload
from commands import start_timer, typed
from stage import Stage


@scenario
async def timer_fires(stage: Stage) -> None:
    """A timer brings a workflow task when its time has come."""
    run = await stage.start()
    await (await stage.workflow_task()).complete(start_timer(user_metadata={"summary": payload("a nap")}))
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(run)


@scenario
async def timers_fire_in_order(stage: Stage) -> None:
    """Of two timers the shorter fires first, whatever the order of the commands."""
    run = await stage.start()
    await (await stage.workflow_task()).complete(start_timer("longer", 2 * SHORTLY), start_timer("shorter", SECOND))
    await (await stage.workflow_task()).complete()
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(run)


@scenario
async def timer_canceled(stage: Stage) -> None:
    """Canceled by a later workflow task, and by the one that started it."""
    run = await stage.start()
    await (await stage.workflow_task()).complete(
        start_timer("later", NEVER), start_timer("at once", NEVER), cancel_timer("at once")
    )
    await stage.signal(run, "wake")
    await (await stage.workflow_task()).complete(cancel_timer("later"), complete())
    await stage.ended(run)


@scenario
async def timer_id_used_again(stage: Stage) -> None:
    """The id of a timer that is over is free."""
    run = await stage.start()
    await (await stage.workflow_task()).complete(start_timer(after=NEVER), cancel_timer(), start_timer())
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(run)


@scenario
async def timer_canceled_when_fired(stage: Stage) -> None:
    """A timer that fired while the workflow task was in flight is canceled out of the buffer."""
    run = await stage.start()
    task = await (await stage.workflow_task()).complete_and_take_next(start_timer(after=SHORTLY))
    await stage.changed(run, since=await stage.transitions(run))
    await task.complete(cancel_timer())
    await stage.signal(run, "wake again")
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(run)


@scenario
async def markers(stage: Stage) -> None:
    """Markers are kept as they are: versions, side effects, local activities with their results and failures."""
    run = await stage.start()
    await (await stage.workflow_task()).complete(
        marker("Version", details={"change-id": input_of("change"), "version": input_of(1)}),
        marker(
            "LocalActivity",
            details={"data": input_of("id")},
            failure=failure("local"),
            header={"fields": {"trace": payload("abc")}},
        ),
        marker("SideEffect", user_metadata={"summary": payload("why")}),
        complete(),
    )
    await stage.ended(run)


@scenario
async def search_attributes_upserted(stage: Stage) -> None:
    """Search attributes are added, replaced and taken away."""
    run = await stage.start()
    for value in (typed(["v1"], "KeywordList"), typed(["v1", "v2"], "KeywordList"), typed(None, "KeywordList")):
        fields = {"indexed_fields": {"TemporalChangeVersion": value}}
        await (await stage.workflow_task()).complete(
            command("upsert_workflow_search_attributes", search_attributes=fields), force_create_new_workflow_task=True
        )
        found = (await stage.describe(run)).workflow_execution_info.search_attributes
        stage.note("search attributes", found)
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(run)


@scenario
async def memo_modified(stage: Stage) -> None:
    """Memo fields are added, replaced and taken away, and go on to the next run."""
    run = await stage.start(memo={"fields": {"kept": payload("a"), "gone": payload("b")}})
    change = {"fields": {"gone": payload(None), "new": payload("c")}}
    await (await stage.workflow_task()).complete(
        command("modify_workflow_properties", upserted_memo=change), force_create_new_workflow_task=True
    )
    stage.note("memo", (await stage.describe(run)).workflow_execution_info.memo)
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(run)
