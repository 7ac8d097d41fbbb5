"""`temporal schedule`: a schedule from its making to its end."""

from __future__ import annotations

import json
import uuid
from typing import Any

from temporalio.client import Client

from cli import Cli, words
from ledger import new_worker

FRIDAYS = '{"dayOfWeek":"Fri","hour":"17","minute":"5"}'


async def create(cli: Cli, task_queue: str, *more: str) -> list[str]:
    """A schedule that does nothing by itself for a long time, and what names it."""
    schedule = ["--schedule-id", f"schedule-{uuid.uuid4()}"]
    action = ["--type", "Doubling", "-t", task_queue, "-w", schedule[1].replace("schedule", "doubling"), "-i", "4"]
    await cli.text("schedule", "create", *schedule, *action, "--interval", "24h/1h", "--notes", "daily", *more)
    return schedule


def n_actions(described: Any) -> int:
    return int(described["info"].get("actionCount", "0"))


async def test_a_schedule_is_created_and_described(cli: Cli, task_queue: str) -> None:
    schedule = await create(cli, task_queue)
    described = await cli.json("schedule", "describe", *schedule)
    spec, action = described["schedule"]["spec"], described["schedule"]["action"]["startWorkflow"]
    assert [(one["interval"], one["phase"]) for one in spec["interval"]] == [("86400s", "3600s")]
    assert (action["workflowType"], action["taskQueue"]["name"]) == ({"name": "Doubling"}, task_queue)
    assert described["schedule"]["policies"]["overlapPolicy"] == "SCHEDULE_OVERLAP_POLICY_SKIP"
    assert len(described["info"]["futureActionTimes"]) == 10
    assert all(moment.endswith("T01:00:00Z") for moment in described["info"]["futureActionTimes"])
    for_people = words(await cli.text("schedule", "describe", *schedule))
    assert (for_people["ScheduleId"], for_people["Notes"], for_people["Paused"]) == (schedule[1], "daily", "false")
    assert for_people["Spec"] == '[{"every":"1d 0h 0m 0s","offset":"1h 0m 0s"}]'
    again = await cli.refused("schedule", "create", *schedule, "--interval", "1h", "--type", "Doubling", "-t", task_queue)
    assert "schedule with this ID is already registered" in again


async def test_schedules_are_listed(cli: Cli, task_queue: str) -> None:
    schedule = await create(cli, task_queue)
    listed = await cli.until("schedule", "list", of=lambda listed: schedule[1] in [one["scheduleId"] for one in listed or []])
    [one] = [one for one in listed if one["scheduleId"] == schedule[1]]
    assert (one["info"]["workflowType"], one["info"]["notes"]) == ({"name": "Doubling"}, "daily")
    assert one["info"]["futureActionTimes"]
    assert schedule[1] in await cli.text("schedule", "list")


async def test_a_schedule_is_triggered_and_backfilled(client: Client, cli: Cli, task_queue: str) -> None:
    async with new_worker(client, task_queue):
        schedule = await create(cli, task_queue)
        assert await cli.text("schedule", "trigger", *schedule) == "Trigger request sent\n"
        describe = ["schedule", "describe", *schedule]
        triggered = await cli.until(*describe, of=lambda described: n_actions(described) == 1)
        [action] = triggered["info"]["recentActions"]
        result = await cli.json("workflow", "result", "-w", action["startWorkflowResult"]["workflowId"])
        assert (result["status"], result["result"]) == ("COMPLETED", 8)
        days = ["--start-time", "2024-01-01T00:00:00Z", "--end-time", "2024-01-03T12:00:00Z", "--overlap-policy", "AllowAll"]
        assert await cli.text("schedule", "backfill", *schedule, *days) == "Backfill request sent\n"
        await cli.until(*describe, of=lambda described: n_actions(described) == 4)


async def test_a_schedule_is_paused_and_updated(cli: Cli, task_queue: str) -> None:
    schedule = await create(cli, task_queue)
    describe = ["schedule", "describe", *schedule]
    await cli.text("schedule", "toggle", *schedule, "--pause", "--reason", "holidays")
    paused = await cli.until(*describe, of=lambda described: described["schedule"]["state"].get("paused"))
    assert paused["schedule"]["state"]["notes"] == "holidays"
    await cli.text("schedule", "toggle", *schedule, "--unpause", "--reason", "back again")
    await cli.until(*describe, of=lambda described: not described["schedule"]["state"].get("paused"))
    await cli.text("schedule", "update", *schedule, "--calendar", FRIDAYS, "--type", "Ledger", "-t", task_queue)
    updated = await cli.until(*describe, of=lambda described: "Ledger" in json.dumps(described["schedule"]["action"]))
    [calendar] = updated["schedule"]["spec"]["structuredCalendar"]
    assert (calendar["dayOfWeek"], calendar["hour"]) == ([{"start": 5, "end": 5, "step": 1}], [{"start": 17, "end": 17, "step": 1}])
    assert all("T17:05:00Z" in moment for moment in updated["info"]["futureActionTimes"])


async def test_a_schedule_is_deleted(cli: Cli, task_queue: str) -> None:
    schedule = await create(cli, task_queue)
    assert await cli.text("schedule", "delete", *schedule) == "Schedule deleted\n"
    assert "not found" in await cli.refused("schedule", "describe", *schedule)
    await cli.until("schedule", "list", of=lambda listed: schedule[1] not in [one["scheduleId"] for one in listed or []])
