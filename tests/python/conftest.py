"""The fixtures of every suite that starts a server per engine."""

from fixtures import client, killable_server, pytest_runtest_makereport, server, task_queue

__all__ = ["client", "killable_server", "pytest_runtest_makereport", "server", "task_queue"]
