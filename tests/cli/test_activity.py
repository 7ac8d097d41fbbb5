"""`temporal activity`: what is done to one activity of a run."""

from __future__ import annotations

import uuid
from typing import Any

from temporalio.client import Client

from cli import Cli, words
from ledger import Messengers, new_worker


async def send(cli: Cli, task_queue: str, messenger: str) -> list[str]:
    """Starts a run whose activity is on its way, and returns what names the activity."""
    workflow_id = f"errand-{uuid.uuid4()}"
    await cli.text("workflow", "start", "--type", "Errand", "-t", task_queue, "-w", workflow_id, "-i", f'"{messenger}"')
    await cli.until("workflow", "describe", "-w", workflow_id, of=lambda described: state(described) is not None)
    return ["-w", workflow_id, "--activity-id", "errand"]


def pending(described: Any) -> Any:
    return next(iter(described.get("pendingActivities", [])), None)


def state(described: Any) -> str | None:
    activity = pending(described)
    return activity and activity["state"].removeprefix("PENDING_ACTIVITY_STATE_")


async def test_an_activity_is_completed_and_failed_by_hand(client: Client, cli: Cli, task_queue: str) -> None:
    messengers = Messengers()
    async with new_worker(client, task_queue, messengers):
        for command, outcome in (
            (["complete", "--result", '"a letter"'], ["Status          COMPLETED", 'Result          "a letter"']),
            (["fail", "--reason", "no such house", "--detail", '{"street": 7}'], ["Status   FAILED", "no such house"]),
        ):
            activity = await send(cli, task_queue, "leaves_it_to_others")
            workflow_id = activity[1]
            await cli.until("workflow", "describe", "-w", workflow_id, of=lambda described: state(described) == "STARTED")
            await cli.text("activity", *command, *activity)
            shown = await cli.text("workflow", "show", "-w", workflow_id, "--follow")
            assert all(told in shown for told in outcome), shown


async def test_an_activity_is_paused_and_unpaused(client: Client, cli: Cli, task_queue: str) -> None:
    messengers = Messengers()
    async with new_worker(client, task_queue, messengers):
        activity = await send(cli, task_queue, "fails")
        await cli.text("activity", "pause", *activity)
        described = ["workflow", "describe", "-w", activity[1]]
        paused = await cli.until(*described, of=lambda described: state(described) == "PAUSED")
        assert pending(paused)["pauseInfo"]["manual"]["identity"].startswith("temporal-cli:")
        attempts = len(messengers.departures)
        await cli.text("activity", "unpause", *activity)
        await cli.until(*described, of=lambda _: len(messengers.departures) > attempts)
        await cli.text("workflow", "terminate", "-w", activity[1])


async def test_an_activity_is_reset_and_its_options_are_changed(client: Client, cli: Cli, task_queue: str) -> None:
    messengers = Messengers()
    async with new_worker(client, task_queue, messengers):
        activity = await send(cli, task_queue, "fails")
        described = ["workflow", "describe", "-w", activity[1]]
        await cli.until(*described, of=lambda described: pending(described).get("attempt", 0) > 1)
        await cli.text("activity", "reset", *activity)
        await cli.until(*described, of=lambda _: messengers.departures.count(1) == 2)
        options = ["--start-to-close-timeout", "7s", "--retry-maximum-attempts", "100"]
        updated = words(await cli.text("activity", "update-options", *activity, *options))
        assert (updated["StartToCloseTimeout"], updated["MaximumAttempts"]) == ("7s", "100")
        changed = pending(await cli.json(*described))
        assert changed["activityOptions"]["startToCloseTimeout"] == "7s"
        await cli.text("workflow", "terminate", "-w", activity[1])
