"""Plays a group by a script, and tells what its members hear.

    join a [as INSTANCE] [v=9] [id=x] [protocols=range,sticky] [timeout=MS] [session=MS]
    sync a [a=part b=part]          heartbeat a [generation=N]          leave a          commit a
    advance MS                      store fails CODE | hold | works     stored

A member is called by the name of its client; a second member id of the same client is `a'`. Below each command stands,
indented, what was heard, in order: answers, and the group's state if it is another one now.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from heirlog.broker.groups.group import ClassicGroup, GroupState
from heirlog.broker.groups.membership import GroupLimits, Membership
from heirlog.context import Context
from heirlog.pending import Pending
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest

from ..fakes import FakeEnv


class Play:
    def __init__(self, max_size: int = 100, delay_ms: int = 3000) -> None:
        self.env = FakeEnv()
        self.group = ClassicGroup("g")
        limits = GroupLimits(delay_ms, 6000, 1_800_000, max_size)
        self.membership = Membership(
            self.env, limits, self._store, lambda more_bytes: True, lambda group: None, lambda: None
        )
        self.heard: list[str] = []
        self._ids: dict[str, str] = {}
        """Member id → name."""
        self._current: dict[str, str] = {}
        """Client → member id."""
        self._generation: dict[str, int] = {}
        self._instances: dict[str, str] = {}
        self._store_as = "works"
        self._held: list[Callable[[ErrorCode], None]] = []
        self._state = GroupState.EMPTY

    def run(self, script: str) -> str:
        """The script with what is heard now."""
        out = []
        for line in script.splitlines():
            command = line.split("#")[0].rstrip()
            if command.startswith("    "):
                continue
            out.append(line)
            if command:
                words = command.split()
                self.heard = []
                getattr(self, f"_do_{words[0]}")(*words[1:])
                self._say_state()
                out += [f"    {said}" for said in self.heard]
        return "\n".join(out) + "\n"

    def _say_state(self) -> None:
        if self.group.state is not self._state:
            self._state = self.group.state
            self.heard.append(f"group {self._state.value}, generation {self.group.generation}")

    # what happens

    def _do_join(self, client: str, *words: str) -> None:
        options = dict(word.split("=") for word in words if "=" in word)
        if "as" in words:
            self._instances[client] = words[words.index("as") + 1]
        version = int(options.get("v", 9))
        member_id = "" if options.get("id") == "none" else self._current.get(client, "")
        if "id" in options and options["id"] != "none":
            member_id = self._id_of(options["id"])
        request = JoinGroupRequest(
            group_id="g",
            session_timeout_ms=int(options.get("session", 10_000)),
            rebalance_timeout_ms=int(options.get("timeout", 60_000)),
            member_id=member_id,
            group_instance_id=self._instances.get(client),
            protocol_type=options.get("type", "consumer"),
            protocols=[
                JoinGroupRequest.JoinGroupRequestProtocol(name=name, metadata=b"")
                for name in options.get("protocols", "range").split(",")
            ],
        )
        context = Context(version, client, "host", "PLAINTEXT", object())
        self._listen(self.membership.join(self.group, request, context), lambda r: self._joined(client, r))

    def _joined(self, client: str, response: Any) -> None:
        self._say_state()
        if response.member_id and response.error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
            self._name(client, response.member_id)
            self._current[client] = response.member_id
        if response.error_code:
            code = ErrorCode(response.error_code)
            self.heard.append(f"{client} cannot join: {code.name}")
            if code is ErrorCode.UNKNOWN_MEMBER_ID and response.member_id == self._current.get(client):
                del self._current[client]
            return
        self._generation[client] = response.generation_id
        members = ",".join(sorted(self._label(member.member_id) for member in response.members))
        skip = ", skips the assignment" if response.skip_assignment else ""
        leader = self._label(response.leader)
        text = f"{self._label(response.member_id)} joined generation {response.generation_id}"
        self.heard.append(f"{text}, {response.protocol_name}, leader {leader}, sees {members or 'nobody'}{skip}")

    def _do_sync(self, client: str, *parts: str) -> None:
        given = [part.split("=") for part in parts]
        request = SyncGroupRequest(
            group_id="g",
            generation_id=self._generation.get(client, -1),
            member_id=self._current.get(client, ""),
            group_instance_id=self._instances.get(client),
            protocol_type="consumer",
            assignments=[
                SyncGroupRequest.SyncGroupRequestAssignment(member_id=self._id_of(name), assignment=part.encode())
                for name, part in given
            ],
        )
        self._listen(self.membership.sync(self.group, request), lambda r: self._synced(client, r))

    def _synced(self, client: str, response: Any) -> None:
        self._say_state()
        if response.error_code:
            self.heard.append(f"{client} cannot sync: {ErrorCode(response.error_code).name}")
        else:
            self.heard.append(f"{client} is assigned {response.assignment.decode() or 'nothing'}")

    def _do_heartbeat(self, client: str, *words: str) -> None:
        options = dict(word.split("=") for word in words)
        request = HeartbeatRequest(
            group_id="g",
            generation_id=int(options.get("generation", self._generation.get(client, -1))),
            member_id=self._id_of(options["id"]) if "id" in options else self._current.get(client, ""),
            group_instance_id=self._instances.get(client),
        )
        self.heard.append(f"{client}: {self.membership.heartbeat(self.group, request).name}")

    def _do_leave(self, *clients: str) -> None:
        request = LeaveGroupRequest(
            group_id="g",
            members=[
                LeaveGroupRequest.MemberIdentity(group_instance_id=client.removeprefix("instance="))
                if client.startswith("instance=")
                else LeaveGroupRequest.MemberIdentity(member_id=self._current.get(client, "unknown"))
                for client in clients
            ],
        )
        answers = self.membership.leave(self.group, request)
        self.heard += [
            f"{client} leaves: {ErrorCode(answer.error_code).name}"
            for client, answer in zip(clients, answers, strict=True)
        ]

    def _do_advance(self, ms: str) -> None:
        self.env.advance(int(ms))

    def _do_store(self, *words: str) -> None:
        self._store_as = " ".join(words)

    def _do_stored(self, code: str = "NONE") -> None:
        held, self._held = self._held, []
        for done in held:
            done(ErrorCode[code])

    def _do_restart(self) -> None:
        """Another coordinator loads what was stored of the group; everybody keeps what they know."""
        record = self.group.as_record({member.member_id: member.assignment for member in self.group.members.values()})
        self.group.mark_dead(0, lambda member: None)
        self.group = ClassicGroup("g")
        self.group.load(record)
        self.membership.sessions.begin(self.group)

    # between

    def _store(self, group: ClassicGroup, assignments: dict[str, bytes], done: Callable[[ErrorCode], None]) -> None:
        parts = ",".join(sorted(f"{self._label(m)}={a.decode()}" for m, a in assignments.items()))
        self.heard.append(f"stored: generation {group.generation} {parts}".rstrip())
        if self._store_as == "hold":
            self._held.append(done)
        else:
            done(ErrorCode[self._store_as.split()[-1]] if self._store_as != "works" else ErrorCode.NONE)

    def _listen(self, answer: Any, on_answer: Callable[[Any], None]) -> None:
        if isinstance(answer, Pending):
            answer.then(on_answer)
        else:
            on_answer(answer)

    def _name(self, client: str, member_id: str) -> None:
        if member_id not in self._ids:
            name = client
            while name in self._ids.values():
                name += "'"
            self._ids[member_id] = name

    def _label(self, member_id: str) -> str:
        """Ids carry the client or instance before a uuid; until it has heard of its id, a member is named by that."""
        if member_id not in self._ids:
            prefix = member_id[:-37]
            client = next((c for c, instance in self._instances.items() if instance == prefix), prefix)
            self._name(client, member_id)
        return self._ids[member_id]

    def _id_of(self, name: str) -> str:
        return next((member_id for member_id, known in self._ids.items() if known == name), f"{name}-unknown")
