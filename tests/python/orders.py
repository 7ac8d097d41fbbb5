"""The order: a workflow with two activities, a timer and a signal, as the issue asks for. Used calm, killed and concurrent.

Every activity execution and every approval makes a token that exists once. The order returns the tokens that it used, so a result
that was lost, doubled or given to another order shows.
"""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

# The charge fails before this attempt.
CHARGE_SUCCEEDS_AT = 3
PACKING_STEPS = 3
HEARTBEAT_EVERY_S = 0.05


@dataclass
class Order:
    key: str
    pause_ms: int = 200
    retry_ms: int = 50
    # What an attempt may take before it is taken for lost. Short where servers are killed: it bounds the recovery.
    attempt_timeout_s: float = 30.0
    heartbeat_timeout_s: float = 10.0


@workflow.defn
class OrderWorkflow:
    def __init__(self) -> None:
        self._approvals: list[str] = []

    @workflow.run
    async def run(self, order: Order) -> list[str]:
        retry = RetryPolicy(initial_interval=timedelta(milliseconds=order.retry_ms), backoff_coefficient=1.0)
        attempt_timeout = timedelta(seconds=order.attempt_timeout_s)
        charge: str = await workflow.execute_activity(
            "charge_card", order.key, start_to_close_timeout=attempt_timeout, retry_policy=retry, result_type=str
        )
        await asyncio.sleep(order.pause_ms / 1000)
        parcel: str = await workflow.execute_activity(
            "pack_parcel",
            order.key,
            start_to_close_timeout=attempt_timeout,
            heartbeat_timeout=timedelta(seconds=order.heartbeat_timeout_s),
            retry_policy=retry,
            result_type=str,
        )
        await workflow.wait_condition(lambda: bool(self._approvals))
        return [charge, parcel, self._approvals[0]]

    @workflow.signal
    def approve(self, token: str) -> None:
        self._approvals.append(token)


@dataclass
class Warehouse:
    """The activities, and a ledger of what they gave out."""

    issued: set[str] = field(default_factory=set)
    may_ship: asyncio.Event = field(default_factory=asyncio.Event)
    """While it is not set, packing goes on and on, with a heartbeat at each turn."""

    @activity.defn(name="charge_card")
    async def charge_card(self, key: str) -> str:
        attempt = activity.info().attempt
        if attempt < CHARGE_SUCCEEDS_AT:
            raise ApplicationError(f"declined at attempt {attempt}", type="CardDeclined")
        return self._issue("charge", key)

    @activity.defn(name="pack_parcel")
    async def pack_parcel(self, key: str) -> str:
        step = 0
        while step < PACKING_STEPS or not self.may_ship.is_set():
            step = min(step + 1, PACKING_STEPS)
            activity.heartbeat({"step": step, "key": key})
            await asyncio.sleep(HEARTBEAT_EVERY_S)
        return self._issue("parcel", key)

    def _issue(self, what: str, key: str) -> str:
        token = f"{what}/{key}/{uuid.uuid4().hex}"
        self.issued.add(token)
        return token


def new_worker(client: Client, task_queue: str, warehouse: Warehouse, **options: Any) -> Worker:
    """With a sticky cache, which is the SDK's default; heartbeats are passed on at once."""
    options.setdefault("max_heartbeat_throttle_interval", timedelta(milliseconds=50))
    options.setdefault("default_heartbeat_throttle_interval", timedelta(milliseconds=50))
    activities = [warehouse.charge_card, warehouse.pack_parcel]
    return Worker(client, task_queue=task_queue, workflows=[OrderWorkflow], activities=activities, **options)
