"""Share groups (KIP-932): members, fetches, acknowledgements, offsets, and the state that leaders keep of them.

Each client is one member of each group; its member id is its own choice. What an answer has given to it is what it
acknowledges, mostly. No lock ends while a sequence is played.

The group of the state APIs has no members and no leaders: only there does it depend on the requests alone.
"""

from __future__ import annotations

from typing import Any

from answers import consumer_group_requests, group_requests
from answers.consumer_group_requests import GROUP, id_of, member_id
from answers.scene import CLIENTS, Scene
from answers.shape import Plan
from answers.world import Batch

Fields = dict[str, Any]
FIRST_WAIT_MS = 5000
"""Of the first fetch of a partition: its leader has to read the state of the group first."""
ALTERED = "-o"
"""Ends the names of groups whose offsets are altered: their epochs are higher here (deviations.py)."""
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)


def group(scene: Scene) -> str:
    if scene.happens(0.03):
        return scene.one("none", f"{scene.name}{ALTERED}")
    return f"{scene.name}-{scene.one('g', 'g', 'g', 'g', 'h')}"


def _topic(scene: Scene) -> str:
    a, b, c = scene.topics
    return scene.one(a, a, a, b) if scene.happens(0.96) else scene.one(c, f"{scene.name}-none")


def _partition(scene: Scene) -> int:
    return scene.one(0, 0, 0, 0, 1) if scene.happens(0.96) else scene.one(-1, 99)


def produce(scene: Scene) -> Fields:
    values = (b"v",) * scene.one(1, 2, 3, 5, 10)
    part = {"index": scene.one(0, 0, 0, 1), "records": Batch(values)}
    topic = scene.topics[0]
    data = {"name": topic, "topic_id": scene.known_id(topic), "partition_data": [part]}
    return {"transactional_id": None, "acks": -1, "timeout_ms": 5000, "topic_data": [data]}


def heartbeat(scene: Scene) -> Fields:
    client, of = scene.rng.randrange(CLIENTS), group(scene)
    a, b, _ = scene.topics
    who = {"group_id": of, "member_id": member_id(scene, client), "client": client}
    who["rack_id"] = scene.one("r", "") if scene.happens(0.05) else None
    is_altered = of.endswith(ALTERED)
    stored = 0 if is_altered else scene.member_epochs.get((of, id_of(client)), 0)
    # several topics would be given to members by the order of their ids, which is another one on each node
    subscription = scene.one([a], [a], [a], [b], [a, f"{scene.name}-none"])
    if (stored <= 0 and (is_altered or scene.happens(0.92))) or scene.happens(0.04):
        return who | {"member_epoch": 0, "subscribed_topic_names": subscription if scene.happens(0.97) else []}
    if scene.happens(0.08):
        return who | {"member_epoch": scene.one(-1, -1, -1, -2)}
    epoch = stored if scene.happens(0.9) else scene.one(stored - 1, stored + 1, -3)
    return who | {"member_epoch": epoch, "subscribed_topic_names": subscription if scene.happens(0.15) else None}


def describe(scene: Scene) -> Fields:
    return {"group_ids": scene.some(lambda: group(scene)), "include_authorized_operations": scene.happens(0.2)}


def _session_epoch(scene: Scene, of: str, client: int) -> int:
    known = scene.share_sessions.get((of, client), 0)
    return known if scene.happens(0.88) else scene.one(-1, -1, 0, known + 1, known - 1, 5)


def _types(scene: Scene, count: int, releases: bool) -> list[int]:
    kinds = (ACCEPT, ACCEPT, ACCEPT, REJECT, GAP) if scene.happens(0.92) else (RENEW, -1, 5, ACCEPT)
    if releases:
        kinds += (RELEASE, RELEASE)
    if scene.happens(0.6):
        return [scene.one(*kinds)]
    if scene.happens(0.05):
        return scene.one([], [ACCEPT] * (count + 1))
    return [scene.one(*kinds) for _ in range(min(count, 100))]


def _acknowledgements(scene: Scene, of: str, client: int, *, releases: bool) -> dict[tuple[str, int], list[Fields]]:
    """By topic and partition: ranges of what the client holds; now and then ones that overlap, leave gaps, or come
    again.

    releases: not in a ShareFetch, with which Apache Kafka may fetch before the release is stored.
    """
    found: dict[tuple[str, int], list[Fields]] = {}
    for topic, partition, first, last in sorted(scene.acquired.get((of, client), [])):
        if scene.happens(0.3):
            continue
        begin = first if scene.happens(0.6) else scene.rng.randint(first, last)
        end = last if scene.happens(0.6) else scene.rng.randint(begin, last)
        if scene.happens(0.07):
            begin, end = scene.one((begin, end + 1), (end + 1, begin), (max(0, begin - 1), end))
        batch = {
            "first_offset": begin,
            "last_offset": end,
            "acknowledge_types": _types(scene, end - begin + 1, releases),
        }
        found.setdefault((topic, partition), []).extend([batch] * (2 if end > begin and scene.happens(0.05) else 1))
    if not found and scene.happens(0.3):
        first = scene.one(0, 0, 1, 3, 50)
        batch = {"first_offset": first, "last_offset": first + scene.one(0, 1, 4), "acknowledge_types": [ACCEPT]}
        found[_topic(scene), _partition(scene)] = [batch]
    return found


def _by_topic(scene: Scene, parts: dict[tuple[str, int], list[Fields]]) -> list[Fields]:
    topics: dict[str, list[Fields]] = {}
    for (topic, partition), batches in parts.items():
        topics.setdefault(topic, []).append({"partition_index": partition, "acknowledgement_batches": batches})
    return [{"topic_id": scene.known_id(topic), "partitions": each} for topic, each in topics.items()]


def _place(scene: Scene, of: str) -> tuple[str, int]:
    """A partition of which the group has a state: the leader of another one asks for it several times."""
    topics = sorted(topic for group, topic in scene.begun if group == of) or [scene.topics[0]]
    topic = scene.one(*topics)
    return topic, scene.one(0, 0, 0, 1) if topic == scene.topics[0] else 0


def fetch(scene: Scene) -> Fields:
    client, of = scene.rng.randrange(2), group(scene)
    if not any(each == of for each, _ in scene.begun):
        of = f"{scene.name}-g"
    epoch = _session_epoch(scene, of, client)
    parts = _acknowledgements(scene, of, client, releases=False) if epoch > 0 and scene.happens(0.5) else {}
    renews = scene.happens(0.04)
    version = 2 if renews else None
    asked = {_place(scene, of)} if scene.happens(0.97) else set()
    # the state is also read again after the last session has ended
    is_open = any(each == of for each, _ in scene.share_sessions)
    first = bool(asked) and (not is_open or any((of, *place) not in scene.shared for place in asked))
    if first and epoch != 0:
        # what the session has already would be answered while the leader still loads this one
        asked, first = set(), False
    parts = {} if first else {place: each for place, each in parts.items() if (of, *place) in scene.shared}
    if epoch == 0 or scene.happens(0.3):
        for place in sorted(asked):
            parts.setdefault(place, [])
    forgotten = [{"topic_id": scene.known_id(_topic(scene)), "partitions": [_partition(scene)]}]
    nothing = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 0, "max_records": 0}
    limits = {
        "max_wait_ms": FIRST_WAIT_MS if first else scene.one(0, 0, 50),
        "min_bytes": 1 if first else scene.one(0, 1, 1),
        "max_bytes": 1 << 20,
        "max_records": scene.one(1, 2, 5, 100, 500),
    }
    return {
        "group_id": of if scene.happens(0.99) else None,
        "member_id": member_id(scene, client) if scene.happens(0.99) else None,
        "share_session_epoch": epoch,
        **(nothing if renews and scene.happens(0.8) else limits),
        "batch_size": scene.one(1, 10, 500),
        "share_acquire_mode": scene.one(0, 0, 1),
        "is_renew_ack": renews,
        "topics": _by_topic(scene, parts),
        "forgotten_topics_data": forgotten if epoch > 0 and scene.happens(0.08) else [],
        "client": client,
        "version": version,
    }


def acknowledge(scene: Scene) -> Fields:
    client, of = scene.rng.randrange(2), group(scene)
    renews = scene.happens(0.1)
    parts = _acknowledgements(scene, of, client, releases=True)
    if renews:
        for batch in (each for batches in parts.values() for each in batches):
            batch["acknowledge_types"] = [RENEW]
    return {
        "group_id": of,
        "member_id": member_id(scene, client),
        "share_session_epoch": _session_epoch(scene, of, client),
        "is_renew_ack": renews if scene.happens(0.9) else not renews,
        "topics": _by_topic(scene, parts),
        "client": client,
    }


# -- offsets ----------------------------------------------------------------------------------------------------------


def _names(scene: Scene) -> list[str]:
    return sorted({_topic(scene) for _ in range(scene.one(1, 1, 2))})


def describe_offsets(scene: Scene) -> Fields:
    # Apache Kafka does not answer if one of several partitions does not exist
    names = _names(scene)
    topics = [
        {"topic_name": name, "partitions": sorted({scene.one(0, 0, 1) for _ in range(scene.one(1, 2))})}
        for name in names
        if name == scene.topics[0] or len(names) == 1
    ]
    groups = sorted({group(scene) for _ in range(scene.one(1, 1, 2))})
    return {"groups": [{"group_id": each, "topics": topics if scene.happens(0.5) else None} for each in groups]}


def alter_offsets(scene: Scene) -> Fields:
    topics = []
    for name in _names(scene):
        indexes = sorted({_partition(scene) for _ in range(scene.one(1, 2))})
        parts = [{"partition_index": index, "start_offset": scene.one(0, 0, 1, 3, 100)} for index in indexes]
        topics.append({"topic_name": name, "partitions": parts})
    of = group(scene)
    if scene.member_epochs.get((of, id_of(0)), -1) <= 0:
        of = f"{scene.name}{ALTERED}"
    return {"group_id": of, "topics": topics}


def delete_offsets(scene: Scene) -> Fields:
    return {"group_id": group(scene), "topics": [{"topic_name": name} for name in _names(scene)]}


def configure(scene: Scene) -> Fields:
    changes = [
        ("share.auto.offset.reset", scene.one("earliest", "earliest", "latest", "by_duration:PT1H", "nonsense")),
        ("share.record.lock.duration.ms", scene.one("20000", "60000", "1", None)),
        ("share.session.timeout.ms", scene.one("50000", "1")),
        ("share.heartbeat.interval.ms", scene.one("6000", None)),
        ("share.isolation.level", scene.one("read_committed", "read_uncommitted", "nonsense")),
        ("share.delivery.count.limit", scene.one("3", "1", None)),
    ]
    name, value = scene.one(*[changes[0]] * 4, *changes)
    change = {"name": name, "config_operation": 0 if value is not None else 1, "value": value}
    resources = [{"resource_type": GROUP, "resource_name": f"{scene.name}-g", "configs": [change]}]
    return {"resources": resources, "validate_only": scene.happens(0.05)}


# -- the state of a partition ------------------------------------------------------------------------------------------


def _state(scene: Scene, part: Any) -> Fields:
    """part: the fields of a partition; is given the group, the topic and the partition."""
    of = f"{scene.name}-{scene.one('s', 's', 's', 'v')}" if scene.happens(0.97) else ""
    topics = [
        {
            "topic_id": scene.known_id(name) if scene.happens(0.96) else scene.topic_id(f"{name}?"),
            "partitions": [
                {"partition": index} | part((of, name, index))
                for index in sorted({_partition(scene) for _ in range(scene.one(1, 1, 2))})
            ],
        }
        for name in _names(scene)
    ]
    return {"group_id": of, "topics": topics}


def initialize_state(scene: Scene) -> Fields:
    return _state(scene, lambda _: {"state_epoch": scene.one(0, 0, 1, 2), "start_offset": scene.one(-1, 0, 0, 5)})


def read_state(scene: Scene) -> Fields:
    return _state(scene, lambda _: {"leader_epoch": scene.one(-1, 0, 0, 1, 2)})


def write_state(scene: Scene) -> Fields:
    def batches() -> list[Fields]:
        found, at = [], scene.one(0, 5, 7)
        for _ in range(scene.one(0, 1, 1, 2, 3)):
            last = at + scene.one(0, 1, 4) if scene.happens(0.95) else at - 1
            batch = {"first_offset": at, "last_offset": last}
            found.append(batch | {"delivery_state": scene.one(0, 0, 2, 4), "delivery_count": scene.one(0, 1, 1, 2, 5)})
            at = max(0, last + scene.one(1, 1, 1, 3, 0, -2))
        return found

    def leader_epoch(place: tuple[str, str, int]) -> int:
        """Mostly of a leader that has read the state, as every leader has."""
        return scene.one(-1, 0, 0, 1, 2) if place in scene.states_read or scene.happens(0.1) else -1

    return _state(
        scene,
        lambda place: {
            "state_epoch": scene.one(-1, 0, 0, 1, 2),
            "leader_epoch": leader_epoch(place),
            "start_offset": scene.one(-1, -1, 0, 3, 6),
            "delivery_complete_count": scene.one(-1, 0, 1, 3),
            "state_batches": batches(),
        },
    )


def delete_state(scene: Scene) -> Fields:
    return _state(scene, lambda _: {})


def read_state_summary(scene: Scene) -> Fields:
    return _state(scene, lambda _: {"leader_epoch": scene.one(-1, 0, 1, 2)})


def list_groups(scene: Scene) -> Fields:
    return consumer_group_requests.list_groups(scene)


def delete_groups(scene: Scene) -> Fields:
    return {"groups_names": sorted({group(scene) for _ in range(scene.one(1, 1, 2))})}


def describe_group_configs(scene: Scene) -> Fields:
    names = [
        *("share.auto.offset.reset", "share.record.lock.duration.ms", "share.session.timeout.ms"),
        *("share.heartbeat.interval.ms", "share.isolation.level", "consumer.session.timeout.ms", "nobody.knows"),
    ]
    keys = None if scene.happens(0.4) else sorted(set(scene.some(lambda: scene.one(*names))))
    resources = [
        {"resource_type": GROUP, "resource_name": each, "configuration_keys": keys}
        for each in sorted({group(scene) for _ in range(scene.one(1, 1, 2))})
    ]
    return {"resources": resources, "include_synonyms": scene.happens(0.4), "include_documentation": False}


def find_coordinator(scene: Scene) -> Fields:
    """Of a group, or of the state of a partition: then the key has an id that is another one on each node."""
    nobody = "AAAAAAAAAAAAAAAAAAAAAQ"
    keys = [f"{group(scene)}:{nobody}:0", f"{group(scene)}:{nobody}", f":{nobody}:0", "g:x:0", f"g:{nobody}:x", ""]
    kind = scene.one(0, 2, 2, 2)
    key = group(scene) if kind == 0 else scene.one(keys[0], *keys)
    return {"key": key, "key_type": kind, "coordinator_keys": [key]}


def mixed_up(scene: Scene) -> Fields:
    """A member of the other protocol."""
    return consumer_group_requests.heartbeat(scene)


def _of_a_share_group(build: Any) -> Any:
    """What belongs to other groups, asked of one that shares."""

    def made(scene: Scene) -> Fields:
        fields: Fields = build(scene)
        return fields | {"group_id": f"{scene.name}-g"}

    return made


def describe_classic(scene: Scene) -> Fields:
    return {"groups": sorted({group(scene), group(scene)}), "include_authorized_operations": False}


def preamble(scene: Scene) -> list[Plan]:
    """A member, a state, and something to fetch."""
    of, topic = f"{scene.name}-g", scene.topics[0]
    change = {"name": "share.auto.offset.reset", "config_operation": 0, "value": "earliest"}
    resources = [
        {"resource_type": GROUP, "resource_name": f"{scene.name}-{each}", "configs": [change]} for each in "gh"
    ]
    joining = {"group_id": of, "member_id": id_of(0), "member_epoch": 0, "rack_id": None}
    parts = [{"index": index, "records": Batch((b"v",) * scene.one(2, 5))} for index in (0, 1)]
    data = [{"name": topic, "partition_data": parts}]
    return [
        Plan(44, 1, {"resources": resources, "validate_only": False}),
        Plan(76, 1, joining | {"subscribed_topic_names": [topic]}),
        Plan(0, 9, {"transactional_id": None, "acks": -1, "timeout_ms": 5000, "topic_data": data}),
    ]


BUILDERS = {
    0: produce,
    8: _of_a_share_group(group_requests.offset_commit),
    9: consumer_group_requests.offset_fetch,
    10: find_coordinator,
    11: _of_a_share_group(consumer_group_requests.join_classic),
    12: _of_a_share_group(consumer_group_requests.heartbeat_classic),
    13: _of_a_share_group(consumer_group_requests.leave_classic),
    14: _of_a_share_group(consumer_group_requests.sync_classic),
    15: describe_classic,
    16: list_groups,
    32: describe_group_configs,
    42: delete_groups,
    44: configure,
    47: _of_a_share_group(group_requests.offset_delete),
    68: mixed_up,
    69: describe,
    76: heartbeat,
    77: describe,
    78: fetch,
    79: acknowledge,
    83: initialize_state,
    84: read_state,
    85: write_state,
    86: delete_state,
    87: read_state_summary,
    90: describe_offsets,
    91: alter_offsets,
    92: delete_offsets,
}
OFTEN = (*(0,) * 6, 44, *(76,) * 10, 77, *(78,) * 15, *(79,) * 11, *(83, 84, 85, 85, 86, 87) * 2, 90, 90, 91, 92)
