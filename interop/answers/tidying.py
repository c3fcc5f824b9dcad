"""What ends a sequence: nothing of it stays that another one could see.

Topics and ACLs are deleted at the end of each sequence, or, where only one family of requests is played, of each tenth:
none of its requests looks at all of them, and their deletion took much of its time.
"""

from __future__ import annotations

from typing import Any

from answers.mutations import ODD_TEXTS
from answers.players import Player, Table
from answers.scene import NODE_ID
from answers.shape import Plan, request_of

AT_MOST = 5
"""Times: a broker may show what its controller has deleted already."""
MIN_ISR = "min.insync.replicas"
DYNAMIC = (2, 3)
"""Configuration sources of a broker and of the cluster."""
BROKER, GROUP = 4, 32
CLASSIC, CONSUMER, SHARE = "classic", "consumer", "share"


def tidy(table: Table, names: tuple[str, ...], *, topics: bool, configs: bool) -> None:
    """names: what the names of groups begin with; topics: and ACLs are deleted, too; configs: and configurations."""
    for player in table.players:
        _abort_open_transactions(player)
    table.wait_for_markers()
    for player in table.players:
        _delete_groups(player, names)
        if topics:
            _delete_topics(player)
    if topics:
        table.settle()
    for _ in range(AT_MOST if configs else 0):
        changed = [_tidied(player) for player in table.players]
        if not any(changed):
            break
        table.settle()


def _ask(player: Player, key: int, version: int, **fields: Any) -> Any:
    return player.server.ask(request_of(Plan(key, version, fields), player.world), version)


def _abort_open_transactions(player: Player) -> None:
    for transaction in _ask(player, 66, 1, state_filters=["Ongoing"]).transaction_states:
        _ask(player, 22, 4, transactional_id=transaction.transactional_id, transaction_timeout_ms=60_000)


def _delete_groups(player: Player, names: tuple[str, ...]) -> None:
    kinds: dict[str, list[str]] = {CLASSIC: [], CONSUMER: [], SHARE: []}
    for listed in _ask(player, 16, 5, states_filter=[], types_filter=[]).groups:
        if listed.group_id.startswith(names) or listed.group_id in ODD_TEXTS:
            kinds[listed.group_type].append(listed.group_id)
    for group in _ask(player, 15, 5, groups=kinds[CLASSIC]).groups:
        members = [{"member_id": member.member_id} for member in group.members]
        if members:
            _ask(player, 13, 5, group_id=group.group_id, members=members)
    for kind, describe, heartbeat in ((CONSUMER, 69, 68), (SHARE, 77, 76)):
        for group in _ask(player, describe, 1, group_ids=kinds[kind]).groups if kinds[kind] else ():
            for member in group.members:
                _ask(player, heartbeat, 1, group_id=group.group_id, member_id=member.member_id, member_epoch=-1)
    groups = [group for each in kinds.values() for group in each]
    if groups:
        _ask(player, 42, 2, groups_names=groups)


def _delete_topics(player: Player) -> None:
    topics = [topic.name for topic in _ask(player, 3, 12, topics=None).topics if not topic.name.startswith("__")]
    if topics:
        _ask(player, 20, 5, topic_names=topics, timeout_ms=20_000)
    anything = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}
    _ask(player, 31, 3, filters=[anything])


def _tidied(player: Player) -> bool:
    """Deletes what was configured; whether there was something."""
    kept = _ask(player, 74, 1, resource_types=[GROUP]).config_resources
    configured = [{"resource_type": GROUP, "resource_name": each.resource_name} for each in kept]
    configured += [{"resource_type": BROKER, "resource_name": broker} for broker in ("", str(NODE_ID))]
    asked = [resource | {"configuration_keys": None} for resource in configured]
    changes = []
    for result in _ask(player, 32, 4, resources=asked).results:
        own = DYNAMIC if result.resource_type == BROKER else (8,)
        wanted = DYNAMIC[1:] if result.resource_name == "" else DYNAMIC[:1]
        names = [
            c.name for c in result.configs if c.config_source in (own if result.resource_type == GROUP else wanted)
        ]
        if MIN_ISR in names:
            # which is there from the beginning, and refuses to be deleted
            names.remove(MIN_ISR)
        if names:
            configs = [{"name": each, "config_operation": 1, "value": None} for each in names]
            changes.append(
                {"resource_type": result.resource_type, "resource_name": result.resource_name, "configs": configs}
            )
    if changes:
        _ask(player, 44, 1, resources=changes)
    return bool(changes)
