"""Topics of a running local cluster, for tests: made, led and in sync, as every broker that is asked sees it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from heirlog.blocking import Client
from heirlog.client.security import PLAINTEXT, Security
from heirlog.local.errors import LocalError
from heirlog.local.similar_names import meant_config
from heirlog.protocol.errors import error_code
from heirlog.protocol.messages import CreateTopicsRequest, MetadataRequest, MetadataResponse

ANSWER_S = 5.0
"""Of one question to one broker, which may just have been started."""
POLL_S = 0.01
BROKER_DEFAULT = -1


def create(
    addresses: Sequence[str],
    name: str,
    partitions: int | None,
    replication_factor: int | None,
    config: Mapping[str, str],
    timeout_s: float,
    security: Security = PLAINTEXT,
) -> None:
    """Returns when every broker at `addresses` knows a leader of each partition. Raises LocalError."""
    nested = CreateTopicsRequest
    topic = nested.CreatableTopic(
        name=name,
        num_partitions=BROKER_DEFAULT if partitions is None else partitions,
        replication_factor=BROKER_DEFAULT if replication_factor is None else replication_factor,
        configs=[nested.CreatableTopicConfig(name=key, value=value) for key, value in config.items()],
    )
    deadline = time.monotonic() + timeout_s
    try:
        with Client(addresses, timeout_s=timeout_s, security=security) as client:
            made = client.send_to_any(nested(topics=[topic], timeout_ms=int(timeout_s * 1000))).topics[0]
    except OSError as error:
        raise LocalError(f"topic {name} cannot be created: {error}") from error
    if made.error_code:
        reason = made.error_message or error_code(made.error_code).name
        like = meant_config(reason)
        if like is not None:
            reason = f"{reason.rstrip(' .;')}; did you mean {like}?"
        # the broker's sentence may name it too
        topic_named = "a topic" if f"'{name}'" in reason or not name else f"topic {name}"
        raise LocalError(f"{topic_named} cannot be created: {reason}")
    for address in addresses:
        left_s = max(0.0, deadline - time.monotonic())
        wait_until(partial(_is_led, address, name, security), left_s, f"the broker at {address} knows topic {name}")


def leader(address: str, name: str, partition: int, security: Security = PLAINTEXT) -> int | None:
    """Of a partition, as the broker at `address` knows it; None if it knows none, or does not answer."""
    answer = _metadata(address, [name], security)
    led = (
        [
            one.leader_id
            for topic in answer.topics
            if not topic.error_code
            for one in topic.partitions
            if one.partition_index == partition and one.leader_id >= 0
        ]
        if answer
        else []
    )
    return led[0] if led else None


def is_missing(address: str, name: str, partition: int, security: Security = PLAINTEXT) -> bool:
    """The broker at `address` answers, and knows no such partition."""
    answer = _metadata(address, [name], security)
    known = [one.partition_index for topic in answer.topics for one in topic.partitions] if answer else [partition]
    return partition not in known


def out_of_sync(address: str, security: Security = PLAINTEXT) -> list[str]:
    """Partitions, as `topic-0`, with replicas outside the ISR; what cannot be asked is one of them."""
    answer = _metadata(address, None, security)
    if answer is None:
        return [f"all of the broker at {address}, which does not answer"]
    return [
        f"{topic.name}-{partition.partition_index}"
        for topic in answer.topics
        for partition in topic.partitions
        if set(partition.replica_nodes) != set(partition.isr_nodes)
    ]


def wait_until(holds: Callable[[], bool], timeout_s: float, what: str) -> None:
    """Raises LocalError: it does not hold in time."""
    deadline = time.monotonic() + timeout_s
    while not holds():
        if time.monotonic() > deadline:
            raise LocalError(f"not within {timeout_s:g} s: {what}")
        time.sleep(POLL_S)


def _is_led(address: str, name: str, security: Security) -> bool:
    answer = _metadata(address, [name], security)
    return answer is not None and all(
        not topic.error_code and topic.partitions and all(one.leader_id >= 0 for one in topic.partitions)
        for topic in answer.topics
    )


def _metadata(address: str, names: Sequence[str] | None, security: Security) -> MetadataResponse | None:
    """What this very broker knows; None while it does not answer."""
    nested = MetadataRequest
    asked = None if names is None else [nested.MetadataRequestTopic(name=name) for name in names]
    try:
        with Client(address, timeout_s=ANSWER_S, security=security) as client:
            answer: MetadataResponse = client.send_to_any(nested(topics=asked, allow_auto_topic_creation=False))
    except OSError:
        return None
    return answer
