"""A worker in a process of its own, so that a test can kill it: `python worker_program.py ADDRESS TASK_QUEUE IDENTITY`."""

from __future__ import annotations

import asyncio
import sys
from datetime import timedelta

from temporalio.client import Client

import orders
from server_process import NAMESPACE


async def work(address: str, task_queue: str, identity: str) -> None:
    client = await Client.connect(address, namespace=NAMESPACE)
    warehouse = orders.Warehouse()
    warehouse.may_ship.set()
    sticky_timeout = timedelta(seconds=2)
    worker = orders.new_worker(
        client, task_queue, warehouse, identity=identity, sticky_queue_schedule_to_start_timeout=sticky_timeout
    )
    await worker.run()


if __name__ == "__main__":
    asyncio.run(work(*sys.argv[1:]))
