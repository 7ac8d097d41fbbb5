"""Every RPC of every service, with each of its fields made wrong in each way that the field's type allows."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

import grpc
from google.protobuf.message import Message

import mutations
from api import CALL_TIMEOUT_S, Api, Attack
from mutations import Mutation
from verdict import judge
from world import World

# Of each method and round.
DEEP_MUTATIONS = 100
BROKEN_BYTES = 10
# What is not built has nothing to go wrong after its first answer.
UNIMPLEMENTED_MUTATIONS = 8
# These may wait for something that a mutated request does not bring about.
WAITING = ("Poll", "QueryWorkflow", "GetWorkflowExecutionHistory", "UpdateWorkflowExecution", "ExecuteMultiOperation", "Watch")
WAITING_TIMEOUT_S = 0.2


def test_a_mutated_field_is_answered_in_the_words_of_the_api(
    api: Api, world: World, chance: random.Random, rounds: int
) -> None:
    judge(api.send_all(_attacks(api, world, lambda base: mutations.of_each_field(base, chance, DEEP_MUTATIONS * rounds))))


def test_a_text_of_almost_4_mb_is_answered_in_the_words_of_the_api(
    api: Api, world: World, chance: random.Random, rounds: int
) -> None:
    judge(api.send_all(_attacks(api, world, lambda base: mutations.with_huge_text(base, chance, rounds)), at_once=4))


def test_broken_bytes_are_answered_in_the_words_of_the_api(
    api: Api, world: World, chance: random.Random, rounds: int
) -> None:
    judge(api.send_all(_attacks(api, world, lambda base: mutations.of_bytes(base, chance, BROKEN_BYTES * rounds))))


def _attacks(api: Api, world: World, mutated: Callable[[Message], Iterable[Mutation]]) -> Iterator[Attack]:
    for method in api.methods:
        world.mend()
        may_wait = method.name.startswith(WAITING)
        timeout_s = WAITING_TIMEOUT_S if may_wait else CALL_TIMEOUT_S
        requests = mutated(world.request(method))
        plain = api.send(Attack(method, "nothing wrong", world.request(method).SerializeToString(), timeout_s, may_wait))
        if plain.code == grpc.StatusCode.UNIMPLEMENTED:
            requests = islice(requests, UNIMPLEMENTED_MUTATIONS)
        for what, payload in requests:
            yield Attack(method, what, payload, timeout_s, may_wait)
