"""What must hold after every attack, whatever it was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import grpc

from api import Answer, Attack
from bystander import Bystander
from victim import Victim

# The figures of the requirement: an ordinary workflow within a second, on no more memory than this.
WORKFLOW_S_MAX = 1.0
MEMORY_MIB_MAX = 300.0
# Memory goes back to the system a little later.
MEMORY_SETTLES_WITHIN_S = 15.0
# Other programs may have the processors for a moment: a median that is too high is measured again.
MEASURED_AGAIN = 3
SHOWN_MAX = 15

# A client can neither act on these nor distinguish them from a bug.
FORBIDDEN_CODES = {grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN, grpc.StatusCode.DATA_LOSS}
# Words of the decoder, the store and the language: what a client did wrong is said in the API's words.
FORBIDDEN_WORDS = ("prost", "Protobuf", "fjall", "lsm", "panicked", ".rs:", "Option::unwrap", "tonic")


def judge(answers: Iterable[tuple[Attack, Answer]]) -> Counter[str]:
    """Fails if an answer is one that no client may get. How often each code came is returned."""
    codes: Counter[str] = Counter()
    wrong: dict[str, str] = {}
    n_wrong = 0
    for attack, answer in answers:
        codes[answer.code.name] += 1
        fault = _fault(attack, answer)
        if fault:
            n_wrong += 1
            # One example of each kind: a bug answers thousands of requests.
            wrong.setdefault(f"{attack.method.name} {fault} {answer.details[:40]}", _shown(attack, answer))
    examples = "\n".join(list(wrong.values())[:SHOWN_MAX])
    assert not wrong, f"{n_wrong} answers of {codes.total()}, {len(wrong)} kinds; {dict(codes)}:\n{examples}"
    return codes


def unharmed(victim: Victim, bystander: Bystander) -> None:
    """Fails if the server is not what it was before."""
    assert victim.is_running(), f"the server ended:\n{victim.log_tail()}"
    complaints = victim.complaints()
    assert not complaints, "\n".join(line[:500] for line in complaints[:SHOWN_MAX])
    took_s = _workflow_s(bystander)
    assert took_s < WORKFLOW_S_MAX, f"an ordinary workflow takes {took_s:.2f} s"
    resident = victim.memory_settled_mib(MEMORY_MIB_MAX, MEMORY_SETTLES_WITHIN_S)
    assert resident < MEMORY_MIB_MAX, f"{resident:.0f} MiB resident, at most {victim.memory_peak_mib():.0f}"


def _workflow_s(bystander: Bystander) -> float:
    for _ in range(MEASURED_AGAIN):
        took_s = bystander.usual_workflow_s()
        if took_s < WORKFLOW_S_MAX:
            break
    return took_s


def _fault(attack: Attack, answer: Answer) -> str:
    if answer.code in FORBIDDEN_CODES:
        return answer.code.name
    if answer.code == grpc.StatusCode.DEADLINE_EXCEEDED and not attack.may_wait:
        return "not answered"
    return next((f"says {word!r}" for word in FORBIDDEN_WORDS if word in answer.details), "")


def _shown(attack: Attack, answer: Answer) -> str:
    start = f"{len(attack.payload)} bytes {attack.payload[:24].hex()}"
    return f"{attack.method.name} with {attack.what} ({start}): {answer.code.name} {answer.details[:200]!r}"
