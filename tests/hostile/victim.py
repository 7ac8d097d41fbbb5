"""The server under attack, with the file descriptors that a usual shell gives it, and what can be read of it from outside."""

from __future__ import annotations

import os
import time
from pathlib import Path

from server_process import ServerProcess, binary, free_port

# What most distributions give to a shell.
FILE_DESCRIPTORS = 1024
LOOK_AGAIN_S = 0.1
MIB = 1 << 20


class Victim(ServerProcess):
    def __init__(self, folder: Path, *options: str) -> None:
        port, self.http_port = free_port(), free_port()
        ports = ["--ip", "127.0.0.1", "--port", str(port), "--http-port", str(self.http_port)]
        server = [binary(), "dev", *ports, "--data", str(folder / "data"), *options]
        # `exec`: the shell becomes the server, whose process id is then the one that we know. A panic's place is enough.
        shell = f'ulimit -n {FILE_DESCRIPTORS} && RUST_BACKTRACE=0 exec "$@"'
        super().__init__(folder, port, ["sh", "-c", shell, "sh", *server])

    @property
    def grpc_endpoint(self) -> tuple[str, int]:
        host, _, port = self.address.rpartition(":")
        return host, int(port)

    @property
    def http_endpoint(self) -> tuple[str, int]:
        return "127.0.0.1", self.http_port

    def memory_mib(self) -> float:
        """Resident now."""
        return self._memory("VmRSS")

    def memory_peak_mib(self) -> float:
        return self._memory("VmHWM")

    def forget_memory_peak(self) -> None:
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    def memory_settled_mib(self, limit_mib: float, within_s: float) -> float:
        """Resident once it is under the limit, or when the time is over."""
        deadline = time.monotonic() + within_s
        while (resident := self.memory_mib()) > limit_mib and time.monotonic() < deadline:
            time.sleep(LOOK_AGAIN_S)
        return resident

    def busy_s_within(self, span_s: float) -> float:
        """The processor time that it uses within the next `span_s` seconds."""
        before = self._processor_s()
        time.sleep(span_s)
        return self._processor_s() - before

    def _processor_s(self) -> float:
        # After the name, which may hold spaces: fields 14 and 15 of the whole are user and system time.
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _memory(self, what: str) -> float:
        status = Path(f"/proc/{self.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith(f"{what}:"))
        return int(line.split()[1]) / 1024
