"""Every scenario leaves the history and the answers that the reference server left."""

from __future__ import annotations

import json

import pytest

from catalogue import SCENARIOS
from conftest import RECORDED
from difference import differences, shown
from not_yet import NOT_YET
from performance import Performance


def parameters() -> list[object]:
    return [
        pytest.param(name, marks=[pytest.mark.xfail(reason=NOT_YET[name], strict=True)] if name in NOT_YET else [])
        for name in SCENARIOS
    ]


@pytest.mark.parametrize("name", parameters())
def test_scenario(name: str, performances: dict[str, Performance], record: bool) -> None:
    performance = performances[name]
    golden_file = RECORDED / f"{name}.json"
    if record:
        if performance.trouble:
            pytest.fail(f"{json.dumps(performance.record, indent=1)}\n{performance.trouble}", pytrace=False)
        golden_file.write_text(json.dumps(performance.record, indent=1, ensure_ascii=False) + "\n")
        return
    found = differences(json.loads(golden_file.read_text()), performance.record)
    if found or performance.trouble:
        pytest.fail(f"{shown(found)}\n{performance.trouble}", pytrace=False)


def test_every_golden_has_its_scenario() -> None:
    assert {path.stem for path in RECORDED.glob("*.json")} == set(SCENARIOS)


def test_not_yet_names_scenarios() -> None:
    assert set(NOT_YET) <= set(SCENARIOS)
