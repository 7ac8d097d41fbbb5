"""Attacks that Everrow does not withstand yet, by the name of their test, each with the reason.

Every entry is expected to fail: one that starts to pass fails the suite until it is taken off the list.
"""

from __future__ import annotations

REASONS: dict[str, tuple[str, ...]] = {}

NOT_YET: dict[str, str] = {name: reason for reason, names in REASONS.items() for name in names}
