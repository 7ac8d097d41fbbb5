"""A server, one who only wants to use it, and what exists on it: kept from one attack to the next, unless one did harm."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from api import Api
from bystander import Bystander
from victim import Victim
from world import World


class Arena:
    def __init__(self, folder: Path) -> None:
        self.victim = Victim(folder)
        self.victim.start()
        self.bystander = Bystander(self.victim.address)
        # The first one is slower: connections are made, shards are loaded.
        self.bystander.workflow_s()

    @cached_property
    def world(self) -> World:
        world = World(Api(self.victim.address))
        world.make()
        return world

    def close(self) -> None:
        self.bystander.close()
        if self.victim.is_running():
            self.victim.kill()


class Arenas:
    """One at a time."""

    def __init__(self, new_folder: Callable[[], Path]) -> None:
        self._new_folder = new_folder
        self._arena: Arena | None = None

    def current(self) -> Arena:
        if self._arena is None:
            self._arena = Arena(self._new_folder())
        return self._arena

    def abandon(self) -> None:
        """The next attack finds another server: it is not blamed for this one's harm."""
        if self._arena is not None:
            self._arena.close()
        self._arena = None
