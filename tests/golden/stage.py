"""Where a scenario plays: one client and one worker in one hand, so that everything happens in a known order.

The worker is no SDK: it polls, is given a task, and answers with commands made by hand. Every call and its answer (or its
refusal) enter the transcript; the histories of all runs are read at the end. Both, masked, are what is compared.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from functools import partial
from typing import Any

from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.operatorservice import v1 as operator_api
from temporalio.api.workflowservice import v1 as api
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from commands import input_of
from http_door import HttpDoor
from masking import Mask
from runs import Run, summary, type_of
from waiting import ASK_AGAIN_S, eventually
from worker import WORKER, ActivityTask, WorkflowTask

NAMESPACE = "default"
WORKFLOW_TYPE = "golden"
CLIENT = "client"
TASK_TIMEOUT = timedelta(seconds=60)
# Longer than any long poll of a server.
CALL_TIMEOUT = timedelta(seconds=90)


class Stage:
    def __init__(self, client: Client, http: HttpDoor, name: str, masked: tuple[str, ...] = ()) -> None:
        # Two runs of the suite against one server do not meet.
        own = f"-{uuid.uuid4().hex[:10]}"
        self._service = client.workflow_service
        self._operator = client.operator_service
        self._http = http
        self._mask = Mask(own, masked)
        self._runs: list[Run] = []
        self._n_requests = 0
        self.id = f"{name}{own}"
        # Where the scenario plays; `settle` gives it one of its own.
        self.namespace = NAMESPACE
        self.queue = f"queue{own}"
        self.sticky_queue = f"sticky{own}"
        self.transcript: list[dict[str, Any]] = []

    # Calls: each one, awaited, leaves a line in the transcript.

    async def call(self, rpc: str, **fields: Any) -> Any:
        """The answer; a refusal is written down too, and raised."""
        return await self.end(self.begin(rpc, **fields))

    async def refused(self, rpc: str, **fields: Any) -> None:
        """A call that is expected to be refused. That it was is seen in the transcript."""
        await self.end_refused(self.begin(rpc, **fields))

    def begin(self, rpc: str, **fields: Any) -> asyncio.Task[Any]:
        """A call that goes on in the background, until `end`."""
        return asyncio.create_task(self.silently(rpc, **fields), name=rpc)

    async def end(self, calling: asyncio.Task[Any]) -> Any:
        try:
            answer = await calling
        except RPCError as error:
            self._write(calling.get_name(), "refusal", self._refusal(error))
            raise
        self._write(calling.get_name(), "answer", self._answer(answer))
        return answer

    async def end_refused(self, calling: asyncio.Task[Any]) -> None:
        try:
            await self.end(calling)
        except RPCError:
            pass

    async def silently(self, rpc: str, **fields: Any) -> Any:
        """A call that is no part of what is compared."""
        method = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in rpc)[1:]
        of_operator = getattr(operator_api, f"{rpc}Request", None)
        if of_operator:
            return await getattr(self._operator, method)(of_operator(**fields), timeout=CALL_TIMEOUT)
        message = getattr(api, f"{rpc}Request")
        named = {"namespace": self.namespace} if "namespace" in message.DESCRIPTOR.fields_by_name else {}
        request = message(**named | fields)
        return await getattr(self._service, method)(request, timeout=CALL_TIMEOUT)

    async def answered(self, rpc: str, **fields: Any) -> Any:
        """The answer, of which a scenario writes down what it likes; None if it is refused, which is written down."""
        calling = self.begin(rpc, **fields)
        await asyncio.wait([calling])
        if calling.exception() is None:
            return calling.result()
        await self.end_refused(calling)
        return None

    async def each_refused(self, rpc: str, plain: dict[str, Any], cases: dict[str, dict[str, Any]]) -> None:
        """Requests that are plain, each save for what its case says. Some may turn out to be answered."""
        for case, fields in cases.items():
            self.note("case", case)
            await self.refused(rpc, **plain | fields)

    async def http(self, verb: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Any:
        """A call of the HTTP API. `body` is text as it is, or data that is sent as JSON; the answer's body, if it is JSON."""
        answer = await self._http.ask(verb, path, body, headers or {})
        told = {"status": answer.status, "body": self._mask.json(answer.body)}
        self._write(f"{verb} {self._mask.text(path)}", "answer", told)
        return answer.body

    async def http_wordless(self, verb: str, path: str, body: Any = None) -> None:
        """One that cannot be read. In which words that is told is up to a server's JSON library."""
        answer = await self._http.ask(verb, path, body, {})
        told = {"status": answer.status, "code": answer.body.get("code") if isinstance(answer.body, dict) else None}
        self._write(f"{verb} {self._mask.text(path)}", "answer", told)

    def note(self, what: str, value: Any) -> None:
        """Writes down something that a scenario looked at."""
        self.transcript.append({"note": what, "value": self._mask.plain(value)})

    def _write(self, rpc: str, outcome: str, value: Any) -> None:
        self.transcript.append({"call": rpc, outcome: value})

    def _answer(self, answer: Any) -> dict[str, Any]:
        plain = self._mask.plain(answer)
        if isinstance(answer, api.PollWorkflowTaskQueueResponse):
            # The events are compared below the run; here, which of them the worker was given.
            plain["history"] = [summary(event) for event in answer.history.events]
        return plain

    def _refusal(self, error: RPCError) -> dict[str, Any]:
        details = list(error.grpc_status.details)
        return {"code": error.status.name, "message": self._mask.text(error.message), "details": self._mask.plain(details)}

    # The client's part.

    def request_id(self) -> str:
        self._n_requests += 1
        return f"request-{self._n_requests}"

    def start_fields(self, workflow_id: str = "", **fields: Any) -> dict[str, Any]:
        """A plain start request, save for what is given."""
        plain = {
            "workflow_id": workflow_id or self.id,
            "workflow_type": {"name": WORKFLOW_TYPE},
            "task_queue": {"name": self.queue},
            # Longer than the default: on a busy machine no workflow task may time out that is not meant to.
            "workflow_task_timeout": TASK_TIMEOUT,
            "identity": CLIENT,
            "request_id": fields.get("request_id") or self.request_id(),
        }
        return plain | fields

    async def start(self, workflow_id: str = "", **fields: Any) -> Run:
        workflow_id = workflow_id or self.id
        request = self.start_fields(workflow_id, **fields)
        while True:
            starting = self.begin("StartWorkflowExecution", **request)
            await asyncio.wait([starting])
            if not _too_soon(starting.exception()):
                return self.watch(workflow_id, (await self.end(starting)).run_id)
            await asyncio.sleep(ASK_AGAIN_S)

    def watch(self, workflow_id: str, run_id: str) -> Run:
        """From now on a run of this scenario: its history, and those of the runs it leads to, are compared."""
        run = Run(workflow_id, run_id)
        if run not in self._runs:
            self._runs.append(run)
        return run

    def forget(self, run: Run) -> None:
        """A run that will not be there at the end."""
        self._runs.remove(run)

    async def signal(self, run: Run, name: str, *values: Any, **fields: Any) -> None:
        given = {"request_id": self.request_id()} | fields
        await self.call(
            "SignalWorkflowExecution",
            workflow_execution=run.execution,
            signal_name=name,
            input=input_of(*values),
            identity=CLIENT,
            **given,
        )

    async def cancel(self, run: Run, **fields: Any) -> None:
        given = {"request_id": self.request_id()} | fields
        await self.call("RequestCancelWorkflowExecution", workflow_execution=run.execution, identity=CLIENT, **given)

    async def terminate(self, run: Run, reason: str = "enough", **fields: Any) -> None:
        await self.call(
            "TerminateWorkflowExecution", workflow_execution=run.execution, reason=reason, identity=CLIENT, **fields
        )

    async def settle(self, **attributes: str) -> None:
        """From now on in a namespace of its own, with these custom search attributes (types by name)."""
        name = self.id.replace("_", "-")
        retention = timedelta(days=1)
        await self.silently("RegisterNamespace", namespace=name, workflow_execution_retention_period=retention)
        self.namespace = name
        await eventually(partial(self.listed, 0))
        if attributes:
            types = {key: f"INDEXED_VALUE_TYPE_{kind}" for key, kind in attributes.items()}
            await self.silently("AddSearchAttributes", namespace=name, search_attributes=types)
            query = " AND ".join(f"{key} IS NOT NULL" for key in attributes)
            await eventually(partial(self.listed, 0, query))

    async def listed(self, n: int, query: str = "") -> bool:
        """Whether lists tell of so many runs. (Counts may be ahead of them.)"""
        try:
            return len((await self.silently("ListWorkflowExecutions", query=query)).executions) == n
        except RPCError:
            # The namespace, or an attribute, is not known everywhere yet.
            return False

    async def describe(self, run: Run) -> api.DescribeWorkflowExecutionResponse:
        return await self.silently("DescribeWorkflowExecution", execution=run.execution)

    # The worker's part.

    async def workflow_task(self, **task_queue: Any) -> WorkflowTask:
        return await self.taken(self.begin_polling(**task_queue))

    def begin_polling(self, **task_queue: Any) -> asyncio.Task[Any]:
        """Polls in the background for as long as there is nothing, until `taken`."""
        queue = {"name": self.queue} | task_queue

        async def poll() -> Any:
            while True:
                polled = await self.silently("PollWorkflowTaskQueue", task_queue=queue, identity=WORKER)
                if polled.task_token:
                    return polled

        return asyncio.create_task(poll(), name="PollWorkflowTaskQueue")

    async def taken(self, polling: asyncio.Task[Any]) -> WorkflowTask:
        return WorkflowTask(self, await self.end(polling))

    async def begin_polling_stickily(self) -> asyncio.Task[Any]:
        """A worker must be known to poll its own queue before a task is given to it there."""
        queue = {"name": self.sticky_queue, "kind": "TASK_QUEUE_KIND_STICKY", "normal_name": self.queue}
        polling = self.begin_polling(**queue)

        async def is_known() -> bool:
            asked = {"task_queue": queue, "task_queue_type": "TASK_QUEUE_TYPE_WORKFLOW"}
            return bool((await self.silently("DescribeTaskQueue", **asked)).pollers)

        await eventually(is_known)
        return polling

    async def activity_task(self, queue: str = "") -> ActivityTask:
        while True:
            polling = self.begin("PollActivityTaskQueue", task_queue={"name": queue or self.queue}, identity=WORKER)
            if (await polling).task_token:
                return ActivityTask(self, (await self.end(polling)).task_token)

    # Waiting for what the server does by itself, and reading it.

    async def recorded(self, run: Run, event_type: str, count: int = 1) -> HistoryEvent:
        """Waits until history holds the event (for the `count`-th time), and returns it."""
        seen = 0
        async for event in self._events(run, wait_new_event=True):
            seen += type_of(event) == event_type
            if seen == count:
                return event
        raise AssertionError(f"history ended without {event_type} ({count})")

    async def ended(self, run: Run) -> None:
        """Waits for the run's last event."""
        async for _ in self._events(run, wait_new_event=True):
            pass

    async def until(self, run: Run, is_so: Callable[[api.DescribeWorkflowExecutionResponse], Any]) -> None:
        async def ask() -> bool:
            return bool(is_so(await self.describe(run)))

        await eventually(ask)

    async def changed(self, run: Run, since: int) -> None:
        """Waits for something that may be hidden in the run's buffer; `since` is what `transitions` told before."""
        await self.until(run, lambda found: found.workflow_execution_info.state_transition_count > since)

    async def transitions(self, run: Run) -> int:
        return (await self.describe(run)).workflow_execution_info.state_transition_count

    async def successor(self, run: Run) -> Run:
        """The run that follows the given one (continued as new, retried, by cron), once that is closed."""
        events = [event async for event in self._events(run, wait_new_event=True)]
        return run.leads(events[-1])[0]

    async def histories(self) -> list[dict[str, Any]]:
        """Of all runs of the scenario, in the order in which they became known."""
        found = []
        runs = list(self._runs)
        for run in runs:
            events = [event async for event in self._events(run)]
            found.append({"workflow_id": self._mask.text(run.workflow_id), "events": self._mask.plain(events)})
            for event in events:
                runs.extend(led for led in run.leads(event) if led not in runs)
        self._runs = runs
        return found

    async def leave(self) -> None:
        """Nothing goes on after the scenario."""
        for run in self._runs:
            try:
                await self.silently("TerminateWorkflowExecution", workflow_execution=run.execution)
            except RPCError as error:
                if error.status != RPCStatusCode.NOT_FOUND:
                    raise

    async def _events(self, run: Run, wait_new_event: bool = False) -> AsyncIterator[HistoryEvent]:
        token = b""
        while True:
            page = await self.silently(
                "GetWorkflowExecutionHistory",
                execution=run.execution,
                wait_new_event=wait_new_event,
                next_page_token=token,
            )
            for event in page.history.events:
                yield event
            token = page.next_page_token
            if not token:
                return


def _too_soon(error: BaseException | None) -> bool:
    """A server may ask for a pause between two runs of one id; that is its configuration, and no part of a scenario."""
    return isinstance(error, RPCError) and error.message.startswith("Too many ")
