"""Classic groups, their offsets and their administration: requests that mean something.

Each client (a connection of its own) is one member of one group at a time.
"""

from __future__ import annotations

from typing import Any

from answers.scene import CLIENTS, Scene
from answers.world import Symbol

Fields = dict[str, Any]
LONG_MS = 60_000
"""No timer of a group ends while a sequence is played."""


def _client(scene: Scene) -> int:
    return scene.rng.randrange(CLIENTS)


def _member(scene: Scene, group: str, client: int) -> Symbol:
    whose = client if scene.happens(0.93) else _client(scene)
    return Symbol("members", f"{group}/{whose}", scene.one("", "", "stranger"))


def _generation(scene: Scene, group: str) -> int:
    known = scene.generations.get(group, 1)
    return known if scene.happens(0.9) else scene.one(-1, 0, known + 1, known - 1)


def join_group(scene: Scene) -> Fields:
    client, group = _client(scene), scene.group()
    protocols = [{"name": name, "metadata": name.encode()} for name in scene.one(("range",), ("range", "sticky"))]
    if scene.happens(0.05):
        protocols = [{"name": "other", "metadata": b""}]
    return {
        "group_id": group,
        "session_timeout_ms": LONG_MS if scene.happens(0.95) else scene.one(1, 10_000_000),
        "rebalance_timeout_ms": LONG_MS,
        "member_id": _member(scene, group, client),
        "group_instance_id": _instance(scene, client),
        "protocol_type": "consumer" if scene.happens(0.95) else scene.one("connect", ""),
        "protocols": protocols,
        "reason": scene.one(None, "", "because"),
        "client": client,
        "keeps": f"{group}/{client}",
    }


def _instance(scene: Scene, client: int) -> str | None:
    return None if client < CLIENTS - 1 and scene.happens(0.97) else f"static-{client}"


def sync_group(scene: Scene) -> Fields:
    client, group = _client(scene), scene.group()
    shares = [
        {"member_id": Symbol("members", f"{group}/{whose}", f"nobody-{whose}"), "assignment": b"share %d" % whose}
        for whose in range(CLIENTS)
        if scene.happens(0.8)
    ]
    return {
        "group_id": group,
        "generation_id": _generation(scene, group),
        "member_id": _member(scene, group, client),
        "group_instance_id": _instance(scene, client),
        "protocol_type": scene.one("consumer", "consumer", "consumer", None, "connect"),
        "protocol_name": scene.one("range", "range", "range", None, "sticky"),
        "assignments": shares if scene.happens(0.8) else [],
        "client": client,
    }


def heartbeat(scene: Scene) -> Fields:
    client, group = _client(scene), scene.group()
    return {
        "group_id": group,
        "generation_id": _generation(scene, group),
        "member_id": _member(scene, group, client),
        "group_instance_id": _instance(scene, client),
        "client": client,
    }


def leave_group(scene: Scene) -> Fields:
    client, group = _client(scene), scene.group()
    members = [
        {
            "member_id": _member(scene, group, whose),
            "group_instance_id": _instance(scene, whose),
            "reason": scene.one(None, "enough"),
        }
        for whose in {client, *((_client(scene),) if scene.happens(0.3) else ())}
    ]
    return {"group_id": group, "member_id": _member(scene, group, client), "members": members, "client": client}


def describe_groups(scene: Scene) -> Fields:
    return {"groups": scene.some(scene.group), "include_authorized_operations": scene.happens(0.3)}


def list_groups(scene: Scene) -> Fields:
    states = ("Stable", "Empty", "PreparingRebalance", "Dead", "stable", "nonsense", "CompletingRebalance")
    return {
        "states_filter": scene.some(lambda: scene.one(*states)) if scene.happens(0.5) else [],
        "types_filter": scene.some(lambda: scene.one("classic", "consumer", "Classic", "nonsense"))
        if scene.happens(0.4)
        else [],
    }


def offset_commit(scene: Scene) -> Fields:
    client, group = _client(scene), scene.group()
    simple = scene.happens(0.6)
    topics = [
        {
            "name": name,
            "topic_id": scene.topic_id(name),
            "partitions": [
                {
                    "partition_index": scene.partition(),
                    "committed_offset": scene.one(0, 1, 5, 100, -1),
                    "committed_leader_epoch": scene.leader_epoch(),
                    "committed_metadata": scene.one("", "note", None, "m" * 5000) if scene.happens(0.4) else "",
                }
                for _ in range(scene.one(1, 1, 2))
            ],
        }
        for name in set(scene.some(scene.topic))
    ]
    return {
        "group_id": group,
        "generation_id_or_member_epoch": -1 if simple else _generation(scene, group),
        "member_id": "" if simple else _member(scene, group, client),
        "group_instance_id": None if simple else _instance(scene, client),
        "retention_time_ms": -1,
        "topics": topics,
        "client": client,
    }


def offset_fetch(scene: Scene) -> Fields:
    def topics() -> list[Fields] | None:
        if scene.happens(0.3):
            return None
        return [
            {"name": name, "topic_id": scene.topic_id(name), "partition_indexes": scene.some(scene.partition)}
            for name in set(scene.some(scene.topic))
        ]

    group = scene.group()
    groups = [
        {"group_id": each, "member_id": scene.one(None, None, ""), "member_epoch": -1, "topics": topics()}
        for each in scene.some(scene.group, 2)
    ]
    return {"group_id": group, "topics": topics(), "groups": groups, "require_stable": scene.happens(0.5)}


def offset_delete(scene: Scene) -> Fields:
    topics = [
        {"name": name, "partitions": [{"partition_index": index} for index in set(scene.some(scene.partition))]}
        for name in set(scene.some(scene.topic))
    ]
    return {"group_id": scene.group(), "topics": topics}


def delete_groups(scene: Scene) -> Fields:
    return {"groups_names": scene.some(scene.group, 2)}


def find_coordinator(scene: Scene) -> Fields:
    return {
        "key": scene.group(),
        "key_type": scene.one(0, 0, 0, 0, 2, 3, -1),
        "coordinator_keys": scene.some(scene.group),
    }


BUILDERS = {
    8: offset_commit,
    9: offset_fetch,
    10: find_coordinator,
    11: join_group,
    12: heartbeat,
    13: leave_group,
    14: sync_group,
    15: describe_groups,
    16: list_groups,
    42: delete_groups,
    47: offset_delete,
}
