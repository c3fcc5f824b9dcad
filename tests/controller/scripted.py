"""Elections as text: each line of a script is a command, and below it, indented, what the controller made of it.

    topic  replicas 1 2 3  min-isr 2
        leader 1  isr 1 2 3  epoch 0/0
    fence 3
        leader 1  isr 1 2  epoch 0/1
    isr 1                                   # the leader asks for this ISR
        leader 1  isr 1  elr 2  epoch 0/2

The real controller runs the commands; only the quorum below it and the clock are driven by hand. A result line holds
what is not empty: leader, ISR, ELR, LastKnownELR, leader epoch / partition epoch, the basis of an election that may
have lost records, and whom a recovery waits for. `unchanged`: no record touched the partition. A `#` begins a comment.

    brokers N [manager off]                the first line; 3 brokers with ids from 1, all unfenced, are the default
    topic replicas N ... [min-isr N] [CONFIG=VALUE ...]
    fence N                                 its session ends: the controller no longer hears from it
    shutdown N                              a controlled shutdown, until the broker may stop
    return N clean | unclean                the broker's next process registers; it stays fenced
    unfence N                               ... and has caught up with the metadata
    isr N ...                               the leader asks for this ISR, with the brokers' registered epochs
    isr N ... with-epoch-of-before N        ... but for N the epoch of the process before the registered one
    min-isr N | strategy NAME
    elect preferred | unclean | balanced | aggressive | designate N
    reassign N ... | cancel
    unregister N
    holds N epoch E end O                   what N answers when a recovery asks for its log
    answer N ...                            these brokers' answers arrive
    wait MS
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from controller.cluster import alter, epoch_of, heartbeat, state_of
from controller.recovering import Cluster
from textscript import ScriptError

from heirlog.metadata.state import PartitionRegistration
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import AlterPartitionRequest, IncrementalAlterConfigsRequest, UnregisterBrokerRequest

ELECTIONS = {"preferred": 0, "unclean": 1, "balanced": 2, "aggressive": 3, "designate": 4}


class Script:
    def __init__(self) -> None:
        self._cluster: Cluster | None = None
        self._has_topic = False
        self._epochs_before: dict[int, int] = {}
        self._logs: dict[int, tuple[int, int]] = {}

    def run(self, words: list[str]) -> list[str]:
        name, arguments = words[0], words[1:]
        command: Callable[[list[str]], str | None] | None = getattr(self, f"_{name.replace('-', '_')}", None)
        if name not in COMMANDS or command is None:
            raise ScriptError(f"there is no command {name}; there are {', '.join(COMMANDS)}")
        before = self._state()
        refusal = command(arguments)
        lines = [] if refusal in (None, "NONE") else [f"answer {refusal}"]
        after = self._state()
        if after is None:
            return lines
        if after == before:
            return [*lines, *self._waits()] or ["unchanged"]
        return [*lines, _shown(after, before), *self._waits()]

    @property
    def cluster(self) -> Cluster:
        if self._cluster is None:
            self._cluster = Cluster()
        return self._cluster

    def _state(self) -> PartitionRegistration | None:
        return state_of(self.cluster.harness) if self._has_topic else None

    def _waits(self) -> list[str]:
        state = self._state()
        if state is None or state.leader >= 0:
            return []
        received = self.cluster.described()
        waits = f"  for {' '.join(map(str, received.waits_for))}" if received.waits_for else ""
        ends = f"  at most {received.wait_ends_in_ms} ms" if received.wait_ends_in_ms >= 0 else ""
        return [f"waits {received.state}{waits}{ends}"]

    # -- the cluster

    def _brokers(self, words: list[str]) -> None:
        count, options = int(words[0]), " ".join(words[1:])
        self._cluster = Cluster(manager="manager off" not in options, brokers=count)

    def _topic(self, words: list[str]) -> None:
        configs = dict(word.split("=", 1) for word in words if "=" in word)
        plain = [word for word in words if "=" not in word]
        if "min-isr" in plain:
            at = plain.index("min-isr")
            configs["min.insync.replicas"] = plain[at + 1]
            del plain[at : at + 2]
        self.cluster.topic(replicas=_ids(plain[1:]), **configs)
        self._has_topic = True

    def _fence(self, words: list[str]) -> None:
        self.cluster.fence(int(words[0]))

    def _shutdown(self, words: list[str]) -> str | None:
        broker = int(words[0])
        heartbeat(self.cluster.harness, broker, want_shut_down=True)
        received = heartbeat(self.cluster.harness, broker, want_shut_down=True)
        return None if received.should_shut_down else "the broker has to wait"

    def _return(self, words: list[str]) -> None:
        broker = int(words[0])
        self._epochs_before[broker] = epoch_of(self.cluster.harness, broker)
        self.cluster.reboot(broker, clean=words[1] == "clean")

    def _unfence(self, words: list[str]) -> None:
        self.cluster.unfence(int(words[0]))

    def _unregister(self, words: list[str]) -> str:
        received = self.cluster.harness.ask("unregister_broker", UnregisterBrokerRequest(broker_id=int(words[0])), 0)
        return ErrorCode(received.error_code).name

    # -- the leader

    def _isr(self, words: list[str]) -> str:
        harness = self.cluster.harness
        if "with-epoch-of-before" in words:
            at = words.index("with-epoch-of-before")
            before = int(words[at + 1])
            epochs = {broker: epoch_of(harness, broker) for broker in _ids(words[:at])}
            epochs[before] = self._epochs_before[before]
            received = alter(
                harness,
                [],
                new_isr_with_epochs=[
                    AlterPartitionRequest.BrokerState(broker_id=broker, broker_epoch=epoch)
                    for broker, epoch in epochs.items()
                ],
            )
        else:
            received = alter(harness, _ids(words))
        return ErrorCode(received.error_code).name

    # -- operators

    def _min_isr(self, words: list[str]) -> None:
        self.set_config("min.insync.replicas", words[0])

    def _strategy(self, words: list[str]) -> None:
        self.set_config("unclean.recovery.strategy", words[0])

    def set_config(self, name: str, value: str) -> None:
        config = IncrementalAlterConfigsRequest.AlterableConfig(name=name, value=value)
        resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
            resource_type=2, resource_name="foo", configs=[config]
        )
        request = IncrementalAlterConfigsRequest(resources=[resource])
        (received,) = self.cluster.harness.ask("incremental_alter_configs", request, 1).responses
        assert received.error_code == 0, received.error_message

    def _elect(self, words: list[str]) -> str:
        desired = {"desired": int(words[1])} if words[0] == "designate" else {}
        return self.cluster.outcome(ELECTIONS[words[0]], **desired)[0]

    def _reassign(self, words: list[str]) -> str:
        return self.cluster.reassign(_ids(words))

    def _cancel(self, words: list[str]) -> str:
        return self.cluster.reassign(None)

    # -- recovery

    def _holds(self, words: list[str]) -> None:
        self._logs[int(words[0])] = int(words[2]), int(words[4])

    def _answer(self, words: list[str]) -> str | None:
        for broker in _ids(words):
            if broker not in self.cluster.asked():
                return f"{broker} has not been asked"
            last, end = self._logs[broker]
            self.cluster.reply(broker, last, end)
        return None

    def _wait(self, words: list[str]) -> None:
        self.cluster.advance(int(words[0]))


COMMANDS = tuple(
    sorted(
        name[1:].replace("_", "-")
        for name in vars(Script)
        if name.startswith("_") and not name.startswith(("__", "_state", "_waits"))
    )
)


def _ids(words: list[str]) -> list[int]:
    return [int(word) for word in words]


def _shown(state: PartitionRegistration, before: PartitionRegistration | None) -> str:
    parts = [f"leader {state.leader if state.leader >= 0 else '-'}"]
    parts.append(f"isr {_listed(state.isr)}")
    if state.elr:
        parts.append(f"elr {_listed(state.elr)}")
    if state.last_known_elr:
        parts.append(f"last-known {_listed(state.last_known_elr)}")
    if state.is_reassigning:
        parts.append(f"replicas {_listed(state.replicas)}")
        parts.append(f"adding {_listed(state.adding)}  removing {_listed(state.removing)}")
    elif before is not None and before.replicas != state.replicas:
        parts.append(f"replicas {_listed(state.replicas)}")
    parts.append(f"epoch {state.leader_epoch}/{state.partition_epoch}")
    if state.basis is not None and (before is None or state.basis != before.basis):
        parts.append(f"basis {state.basis.basis.name}")
    return "  ".join(parts)


def _listed(brokers: Sequence[int]) -> str:
    return " ".join(map(str, brokers)) or "-"
