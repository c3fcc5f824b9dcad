"""Groups of the consumer protocol (KIP-848), and members of the classic protocol in them: requests that mean something.

Each client is one member of each group; its member id is its own choice, the same on every node. The groups use the
assignor `range`, whose result does not depend on the order of Java's hash tables, or `uniform` with one topic only: the
order of the ids of topics is another one on each node, that of the members is not (`id_of`).

Three things make the answers of all nodes the same at every time: a lookup of a regular expression ends before the next
request (`players.Table.wait_for_lookup`); at most one member of a group has an id that the coordinator makes, and ids
of the others sort after it; and the timers are longer than a sequence.
"""

from __future__ import annotations

import struct
from typing import Any

from answers import group_requests
from answers.group_requests import LONG_MS
from answers.scene import CLIENTS, Scene
from answers.world import Symbol

Fields = dict[str, Any]
UNREADABLE = b"nonsense"
"""A classic member's subscription."""
CLASSIC_CLIENT = 0
"""The one member with an id of the coordinator's."""
GROUP = 32
REGEXES = ("{}-[ab]", "{}-.*", "{}-b", "{}-nothing", "")
BAD_REGEXES = ("(", "[a", "a{2,1}", "(?=a)b", r"(a)\1")


def id_of(client: int) -> str:
    """Of its members; their order is also that of Java's hash tables."""
    return f"~m{2 * client}"


def member_id(scene: Scene, client: int) -> str:
    """Of a client; now and then of another one, or of nobody."""
    whose = client if scene.happens(0.95) else scene.rng.randrange(CLIENTS)
    return id_of(whose) if scene.happens(0.98) else scene.one("", "stranger")


def group(scene: Scene) -> str:
    return f"{scene.name}-{scene.one('g', 'g', 'g', 'h')}" if scene.happens(0.97) else scene.one("", f"{scene.name}-x")


def _instance(scene: Scene, client: int) -> str | None:
    return f"static-{client}" if client == CLIENTS - 1 else None


def _epoch(scene: Scene, of: str, client: int) -> int:
    known = scene.member_epochs.get((of, id_of(client)), 0)
    return known if scene.happens(0.9) else scene.one(known - 1, known + 1, known - 2, 1, -3)


def _topic_partitions(scene: Scene, of: str, client: int) -> list[Fields]:
    """What it has, as last answered, or a part or more of it."""
    owned = scene.owned.get((of, id_of(client)), {})
    found = [{"topic_id": scene.known_id(topic), "partitions": list(parts)} for topic, parts in owned.items()]
    if found and scene.happens(0.15):
        found.pop()
    if scene.happens(0.04):
        found.append({"topic_id": scene.topic_id(), "partitions": [scene.partition()]})
    return found


def _subscription(scene: Scene, of: str) -> list[str]:
    if of.endswith("-h"):
        # with the assignor `uniform`
        return [scene.topics[0]]
    a, b, _ = scene.topics
    return scene.one([a], [a, b], [b], [a, f"{scene.name}-none"], [])


def _regex(scene: Scene) -> str:
    return scene.one(*REGEXES).format(scene.name) if scene.happens(0.8) else scene.one(*BAD_REGEXES)


def heartbeat(scene: Scene) -> Fields:
    fields = _heartbeat(scene)
    # otherwise each node makes the id
    return fields if fields["member_id"] else fields | {"version": 1}


def _heartbeat(scene: Scene) -> Fields:
    client, of = scene.rng.randrange(CLIENTS), group(scene)
    who = {"group_id": of, "member_id": member_id(scene, client), "client": client}
    stored = scene.member_epochs.get((of, id_of(client)), 0)
    joins = scene.happens(0.92 if stored <= 0 else 0.06)
    if joins and who["member_id"] not in ("", "stranger"):
        # a member that changes its instance id loses everything on Apache Kafka
        return who | {"member_id": id_of(client), "instance_id": _instance(scene, client)} | _joining(scene, of)
    who["instance_id"] = _instance(scene, client) if scene.happens(0.93) else scene.one(None, "static-0", "")
    if joins:
        return who | _joining(scene, of)
    if scene.happens(0.08):
        return who | {"member_epoch": -2 if client == CLIENTS - 1 and scene.happens(0.7) else scene.one(-1, -1, -2)}
    return who | _staying(scene, of, client)


def _joining(scene: Scene, of: str) -> Fields:
    by_regex = scene.happens(0.2) and not of.endswith("-h")
    names, regex = _subscription(scene, of), _regex(scene) if by_regex else None
    has_members = any(group == of for group, _ in scene.member_epochs)
    if has_members:
        # with nothing, also as long as an expression is not looked up, Apache Kafka may assign as if all had subscribed
        # to the same
        names, regex = names or [scene.topics[0]], regex or None
    return {
        "member_epoch": 0,
        "rebalance_timeout_ms": LONG_MS if scene.happens(0.98) else -1,
        "rack_id": scene.one(None, None, "r", "") if scene.happens(0.2) else None,
        "subscribed_topic_names": names if regex is None or has_members or scene.happens(0.3) else None,
        "subscribed_topic_regex": regex,
        "server_assignor": _assignor(scene, of),
        "topic_partitions": [] if scene.happens(0.96) else None,
        "version": 1 if by_regex else None,
    }


def _assignor(scene: Scene, of: str) -> str | None:
    if of.endswith("-h"):
        return "uniform"
    return scene.one(None, "range") if scene.happens(0.97) else "nobody"


def _staying(scene: Scene, of: str, client: int) -> Fields:
    changes = scene.happens(0.15)
    by_regex = changes and scene.happens(0.3) and not of.endswith("-h")
    is_full = scene.happens(0.2)
    return {
        "member_epoch": _epoch(scene, of, client),
        "rebalance_timeout_ms": LONG_MS if is_full else -1,
        "subscribed_topic_names": _subscription(scene, of) if changes and not by_regex else None,
        "subscribed_topic_regex": _regex(scene) if by_regex else None,
        "server_assignor": None,
        "topic_partitions": _topic_partitions(scene, of, client) if is_full or scene.happens(0.6) else None,
        "version": 1 if by_regex else None,
    }


def describe(scene: Scene) -> Fields:
    return {"group_ids": scene.some(lambda: group(scene)), "include_authorized_operations": scene.happens(0.2)}


def list_groups(scene: Scene) -> Fields:
    states = ("Stable", "Empty", "Assigning", "Reconciling", "Dead", "stable", "nonsense", "CompletingRebalance")
    types = ("classic", "consumer", "share", "Consumer", "streams", "nonsense")
    return {
        "states_filter": scene.some(lambda: scene.one(*states)) if scene.happens(0.4) else [],
        "types_filter": scene.some(lambda: scene.one(*types)) if scene.happens(0.4) else [],
    }


def describe_classic(scene: Scene) -> Fields:
    return {"groups": list({group(scene), group(scene)}), "include_authorized_operations": False}


def delete_groups(scene: Scene) -> Fields:
    return {"groups_names": list({group(scene) for _ in range(scene.one(1, 1, 2))})}


def offset_commit(scene: Scene) -> Fields:
    client, of = scene.rng.randrange(CLIENTS), group(scene)
    simple = scene.happens(0.15)
    commits = group_requests.offset_commit(scene)
    return commits | {
        "group_id": of,
        "generation_id_or_member_epoch": -1 if simple else _epoch(scene, of, client),
        "member_id": "" if simple else _committer(scene, of, client),
        "group_instance_id": None if simple or scene.happens(0.8) else _instance(scene, client),
        "client": client,
        "version": scene.one(None, None, 9, 9, 10, 10),
    }


def _committer(scene: Scene, of: str, client: int) -> Any:
    if client == CLASSIC_CLIENT and scene.happens(0.4):
        return Symbol("members", f"{of}/{client}", "stranger")
    return member_id(scene, client)


def offset_fetch(scene: Scene) -> Fields:
    fetches = group_requests.offset_fetch(scene)
    for each in fetches["groups"]:
        client = scene.rng.randrange(CLIENTS)
        each["group_id"] = group(scene)
        if scene.happens(0.6):
            each["member_id"] = member_id(scene, client)
            each["member_epoch"] = _epoch(scene, each["group_id"], client)
    return fetches | {"group_id": group(scene), "version": scene.one(None, 9, 9, 10)}


def offset_delete(scene: Scene) -> Fields:
    return group_requests.offset_delete(scene) | {"group_id": group(scene)}


# -- members of the classic protocol ----------------------------------------------------------------------------------


def _consumer_metadata(scene: Scene, of: str, client: int) -> bytes:
    """ConsumerProtocolSubscription, version 0, 1 or 3."""
    version = scene.one(0, 1, 3)
    topics = _subscription(scene, of)
    data = struct.pack(">hi", version, len(topics)) + b"".join(_text(each) for each in topics) + struct.pack(">i", -1)
    if version >= 1:
        owned = scene.owned.get((of, f"classic-{client}"), {})
        data += struct.pack(">i", len(owned)) + b"".join(
            _text(topic) + struct.pack(f">i{len(parts)}i", len(parts), *parts) for topic, parts in owned.items()
        )
    if version >= 2:
        data += struct.pack(">i", scene.generations.get(of, -1))
    if version >= 3:
        data += struct.pack(">h", -1)
    return data if scene.happens(0.97) else UNREADABLE


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def _classic(scene: Scene) -> int:
    return CLASSIC_CLIENT if scene.happens(0.75) else CLIENTS - 1


def _mixed_group(scene: Scene) -> str:
    """Never one with `uniform`, which would go by the id that each node makes for the member."""
    of = group(scene)
    return f"{scene.name}-g" if of.endswith("-h") else of


def join_classic(scene: Scene) -> Fields:
    client, of = _classic(scene), _mixed_group(scene)
    name = scene.one("range", "range", "sticky")
    return {
        "group_id": of,
        "session_timeout_ms": LONG_MS,
        "rebalance_timeout_ms": LONG_MS,
        "member_id": Symbol("members", f"{of}/{client}", scene.one("", "", "", "stranger")),
        "group_instance_id": _instance(scene, client),
        "protocol_type": "consumer" if scene.happens(0.97) else "connect",
        "protocols": [{"name": name, "metadata": _consumer_metadata(scene, of, client)}],
        "reason": None,
        "client": client,
        "keeps": f"{of}/{client}",
    }


def sync_classic(scene: Scene) -> Fields:
    client, of = _classic(scene), _mixed_group(scene)
    share = struct.pack(">hi", 0, 1) + _text(scene.topics[0]) + struct.pack(">ii", 1, scene.one(0, 1, 2))
    share += struct.pack(">i", -1) if scene.happens(0.9) else struct.pack(">i", 1) + b"u"
    given = [{"member_id": Symbol("members", f"{of}/{client}", "nobody"), "assignment": share}]
    return {
        "group_id": of,
        "generation_id": _generation(scene, of),
        "member_id": Symbol("members", f"{of}/{client}", "nobody"),
        "group_instance_id": _instance(scene, client),
        "protocol_type": "consumer",
        "protocol_name": scene.one("range", "range", "sticky"),
        "assignments": given,
        "client": client,
    }


def _generation(scene: Scene, of: str) -> int:
    known = scene.generations.get(of, 1)
    return known if scene.happens(0.93) else scene.one(known - 1, known + 1, -1)


def heartbeat_classic(scene: Scene) -> Fields:
    client, of = _classic(scene), _mixed_group(scene)
    return {
        "group_id": of,
        "generation_id": _generation(scene, of),
        "member_id": Symbol("members", f"{of}/{client}", "nobody"),
        "group_instance_id": _instance(scene, client),
        "client": client,
    }


def leave_classic(scene: Scene) -> Fields:
    client, of = _classic(scene), _mixed_group(scene)
    member: Any = Symbol("members", f"{of}/{client}", "nobody")
    if scene.happens(0.2):
        member = scene.one("", member_id(scene, scene.rng.randrange(CLIENTS)))
    leaving = {"member_id": member, "group_instance_id": _instance(scene, client), "reason": scene.one(None, "enough")}
    return {"group_id": of, "member_id": member, "members": [leaving], "client": client}


def configure(scene: Scene) -> Fields:
    changes = [
        ("consumer.session.timeout.ms", scene.one("50000", "45000", "60000", "1", "x", None)),
        ("consumer.heartbeat.interval.ms", scene.one("5000", "6000", "15000", "50000", None)),
        ("share.auto.offset.reset", scene.one("earliest", "latest", "nonsense")),
        ("nobody.knows", "1"),
    ]
    name, value = scene.one(*changes[:2], *changes[:2], *changes)
    change = {"name": name, "config_operation": 0 if value is not None else 1, "value": value}
    return {
        "resources": [{"resource_type": GROUP, "resource_name": group(scene), "configs": [change]}],
        "validate_only": scene.happens(0.1),
    }


def add_partitions(scene: Scene) -> Fields:
    """A change of the metadata, which raises the epochs of the groups."""
    count = 3 if scene.happens(0.7) else 4
    topic = {"name": scene.topics[1], "count": count, "assignments": None}
    return {"topics": [topic], "timeout_ms": 20_000, "validate_only": False}


BUILDERS = {
    8: offset_commit,
    9: offset_fetch,
    11: join_classic,
    12: heartbeat_classic,
    13: leave_classic,
    14: sync_classic,
    15: describe_classic,
    16: list_groups,
    37: add_partitions,
    42: delete_groups,
    44: configure,
    47: offset_delete,
    68: heartbeat,
    69: describe,
}
OFTEN = (*(68,) * 22, 69, 69, 8, 9, 11, 14, 12)
