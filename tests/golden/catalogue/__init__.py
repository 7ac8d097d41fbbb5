"""The scenarios, by what they are about. A scenario plays on a stage; its docstring says what it shows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules

from stage import Stage

Play = Callable[[Stage], Awaitable[None]]


@dataclass(frozen=True)
class Scenario:
    play: Play
    # Fields that depend on the moment, in this scenario only.
    masked: tuple[str, ...]

    @property
    def shows(self) -> str:
        return " ".join((self.play.__doc__ or "").split())


SCENARIOS: dict[str, Scenario] = {}


def scenario(play: Play) -> Play:
    return scenario_masking()(play)


def scenario_masking(*fields: str) -> Callable[[Play], Play]:
    def enter(play: Play) -> Play:
        name = play.__name__
        assert name not in SCENARIOS, f"two scenarios named {name}"
        SCENARIOS[name] = Scenario(play, fields)
        assert SCENARIOS[name].shows, f"{name} does not say what it shows"
        return play

    return enter


for module in iter_modules(__path__):
    import_module(f"{__name__}.{module.name}")
