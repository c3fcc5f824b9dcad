"""The group protocol as scripts: each file in `data` tells what its members hear.

What is indented is written by the runner: `REWRITE_SCRIPTS=1 python -m pytest tests/broker/groups` writes it again.
Read the difference before believing it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heirlog.broker.groups.group import GroupState

from .play import Play

SCRIPTS = sorted((Path(__file__).parent / "data").glob("*.txt"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_members_hear_what_the_script_says(path: Path) -> None:
    script = path.read_text(encoding="utf-8")
    received = Play().run(script)
    if os.environ.get("REWRITE_SCRIPTS"):
        path.write_text(received, encoding="utf-8")
    else:
        assert received == script


def test_a_full_group_takes_nobody_else() -> None:
    play = Play(max_size=2)
    play.run("join a v=3\njoin b v=3\njoin c v=3\n")
    assert play.heard == ["c cannot join: GROUP_MAX_SIZE_REACHED"]


def test_without_a_delay_the_first_member_is_in_at_once() -> None:
    play = Play(delay_ms=0)
    play.run("join a v=3\nadvance 1\n")
    assert play.group.state is GroupState.COMPLETING_REBALANCE


CLIENTS = st.sampled_from(["a", "b", "c", "d"])
COMMANDS = st.one_of(
    st.builds("join {}{}".format, CLIENTS, st.sampled_from(["", " v=3", " id=none v=3", " protocols=range,sticky"])),
    st.builds("join s as i{}".format, st.sampled_from(["", " id=none", " v=5 id=none"])),
    st.builds("sync {} a=x b=y c=z".format, CLIENTS | st.just("s")),
    st.builds("heartbeat {}".format, CLIENTS | st.just("s")),
    st.builds("leave {}".format, CLIENTS | st.just("instance=i")),
    st.builds("advance {}".format, st.sampled_from([1, 3000, 7000, 10_000, 61_000, 301_000])),
    st.sampled_from(["store works", "store hold", "store fails NOT_COORDINATOR", "stored", "stored NOT_COORDINATOR"]),
)


@given(st.lists(COMMANDS, max_size=60))
@settings(max_examples=150, deadline=None)
def test_whatever_happens_the_group_is_of_one_piece(commands: list[str]) -> None:
    play = Play()
    for command in commands:
        play.run(command)
        group = play.group
        assert (group.state is GroupState.EMPTY) <= (not group.members)
        assert set(group.static_members.values()) <= set(group.members)
        assert group.leader is None or group.leader in group.members
        assert set(group.not_synced) <= set(group.members)
        for member in group.members.values():
            assert member.cancel_timer is not None, "every member has a session that can end"
            assert member.joining is None or group.state is GroupState.PREPARING_REBALANCE or member.instance_id
            assert member.syncing is None or group.state is GroupState.COMPLETING_REBALANCE
    # when everybody is silent everybody is gone, and everybody has been told something
    play.run("store works\nstored\nadvance 700000\n")
    assert (play.group.state, play.group.members) == (GroupState.EMPTY, {})
