"""The official web UI, unmodified: its server as a process, its pages in a headless Chromium."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path
from urllib.parse import urlsplit

from playwright.async_api import Page, Response, expect

from server_process import REPOSITORY, free_port

READY_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 30.0
ASK_AGAIN_S = 0.05
# A page asks the server several times before it shows anything, on a machine that may be compiling.
SHOWN_TIMEOUT_MS = 30_000
SCREENSHOTS = REPOSITORY / ".everrow" / "ui-screenshots"


class UiServer:
    """The UI's own server, between the browser and the gRPC API."""

    def __init__(self, folder: Path, grpc_address: str) -> None:
        self._port = free_port()
        self._log = folder / "ui.log"
        config = folder / "config" / "everrow.yaml"
        config.parent.mkdir()
        config.write_text(f"temporalGrpcAddress: {grpc_address}\nhost: 127.0.0.1\nport: {self._port}\nenableUi: true\n")
        self._command = [binary(), "--root", str(folder), "--config", "config", "--env", "everrow", "start"]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not self._listens():
            assert self._process.poll() is None and time.monotonic() < deadline, self._log.read_text()
            time.sleep(ASK_AGAIN_S)

    def stop(self) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait(STOP_TIMEOUT_S)

    def _listens(self) -> bool:
        with socket.socket() as asking:
            return asking.connect_ex(("127.0.0.1", self._port)) == 0


class Ui:
    """One browser page, and the calls of it that the server refused."""

    def __init__(self, page: Page, url: str, name: str) -> None:
        self._page = page
        self._url = url
        self._name = name
        self.refused: list[tuple[int, str]] = []
        page.set_default_timeout(SHOWN_TIMEOUT_MS)
        page.on("response", self._note)

    async def open(self, path: str, *shown: str) -> None:
        """Opens a page, waits until it shows all of this, and keeps a picture of it."""
        await self._page.goto(self._url + path, wait_until="domcontentloaded")
        for text in shown:
            await expect(self._page.get_by_text(text).filter(visible=True).first).to_be_visible(timeout=SHOWN_TIMEOUT_MS)
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        await self._page.screenshot(path=SCREENSHOTS / f"{self._name}.png")

    async def text(self) -> str:
        return await self._page.inner_text("body")

    def _note(self, response: Response) -> None:
        if response.status >= 400:
            self.refused.append((response.status, urlsplit(response.url).path))


def binary() -> str:
    named = os.environ.get("EVERROW_TEST_UI")
    if named:
        return named
    built = sorted((REPOSITORY / ".everrow").glob("ui-server-*/server"))
    assert built, "no server of the web UI: set EVERROW_TEST_UI, or let `cargo xtask test --suite ui` build it"
    return str(built[-1])


def chromium() -> str:
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    assert found, "Chromium is needed (Debian and Ubuntu: apt-get install chromium)"
    return found
