"""A server, the web UI in front of it, and a page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from playwright.async_api import async_playwright
from temporalio.client import Client

from fixtures import pytest_runtest_makereport, task_queue
from server_process import NAMESPACE, ServerProcess, embedded
from ui import Ui, UiServer, chromium

__all__ = ["client", "pytest_runtest_makereport", "server", "task_queue", "ui", "ui_server"]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    server = embedded(tmp_path_factory.mktemp("server"))
    server.start()
    try:
        yield server
    finally:
        server.stop()
    assert not server.complaints(), "\n".join(server.complaints())


@pytest.fixture(scope="session")
def ui_server(server: ServerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[UiServer]:
    ui_server = UiServer(tmp_path_factory.mktemp("ui"), server.address)
    ui_server.start()
    try:
        yield ui_server
    finally:
        ui_server.stop()


@pytest.fixture
async def client(server: ServerProcess) -> Client:
    return await Client.connect(server.address, namespace=NAMESPACE)


@pytest.fixture
async def ui(ui_server: UiServer, request: pytest.FixtureRequest) -> AsyncIterator[Ui]:
    async with async_playwright() as playwright:
        # No sandbox: CI runs as root, and the pages are ours.
        browser = await playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        page = await browser.new_page(viewport={"width": 1400, "height": 1000})
        yield Ui(page, ui_server.url, request.node.originalname)
        await browser.close()
