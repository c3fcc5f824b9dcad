"""Replication as text: each line of a script is a command, and below it, indented, what broker 1 made of it.

    topic  replicas 1 2 3  min-isr 2        # broker 1 leads
        leader epoch 1  isr 1 2 3  hw 0  end 0
    produce 3                               # acks=all: the answer waits
        leader epoch 1  isr 1 2 3  hw 0  end 3
    fetch 2 at 3                            # broker 2 has everything below offset 3
        unchanged
    fetch 3 at 3
        leader epoch 1  isr 1 2 3  hw 3  end 3
        produce 1 answered NONE  offset 0

The real broker 1 runs the commands, from the request down to its files; the script is its controller, the other
brokers, and its clients. A result line holds the role, the leader epoch, the ISR that the controller has confirmed, the
high watermark and the log end offset. Other lines are the answers of broker 1 and the requests that it sends.

    topic replicas N ... [isr N ...] [min-isr N]
    image [leader N] [isr N ...] [min-isr N] [recovering]
                        one metadata image with all of these; `leader` begins a new leader epoch, - is no leader.
                        `recovering`: the election could lose records. Without words: what was confirmed last
    fence N | unfence N             in the image
    return N                        broker N has registered again, under a new broker epoch, in the image
    produce COUNT [acks 0 | 1 | all] [producer ID sequence N]          acks=all without it
    fetch N at OFFSET [last-epoch E] [leader-epoch E] [of-before]      with the epochs that broker 1 has;
                                    `of-before`: with the broker epoch that N had before it returned
    confirm                         the controller does what broker 1 asks for, its answer arrives before the image
    refuse CODE                     ... or refuses it
    records COUNT epoch E [hw N]    the leader's answer to the fetch of broker 1
    no-records [hw N]
    diverging epoch E end OFFSET    ... or that the logs differ: E and OFFSET as the leader has them
    disk-fails                      the log directory of the partition
    wait MS
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from broker.fakes import TOPIC_IDS, Rig, answer_of, batch, ids, state
from textscript import ScriptError

from heirlog.broker.partition import Partition, ReplicaRole
from heirlog.metadata.basis import Basis, ElectionBasis
from heirlog.metadata.state import PartitionRegistration
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import AlterPartitionResponse, FetchResponse
from heirlog.protocol.types import BrokerId, LeaderEpoch, PartitionEpoch
from heirlog.testing.conformance.body import Sent

ACKS = {"0": 0, "1": 1, "all": -1}
WORDS = ("leader", "isr", "min-isr", "recovering", "replicas")


class Script:
    """Broker 1 and what happens around it."""

    def __init__(self) -> None:
        self._rig = Rig().started()
        self._state: PartitionRegistration | None = None
        """Of the last image, or what the controller has confirmed since."""
        self._epochs = {broker: 100 + broker for broker in (1, 2, 3)}
        self._epochs_before: dict[int, int] = {}
        self._produces: list[tuple[int, Any]] = []
        self._produced = 0
        self._shown_requests: list[Sent] = []

    def run(self, words: list[str]) -> list[str]:
        name, arguments = words[0], words[1:]
        command: Callable[[list[str]], str | None] | None = getattr(self, f"_do_{name.replace('-', '_')}", None)
        if command is None:
            raise ScriptError(f"there is no command {name}; there are {', '.join(COMMANDS)}")
        before = self._shown()
        answer = command(arguments)
        lines = [] if answer is None else [answer]
        after = self._shown()
        if after != before:
            lines.append(after)
        lines += [*self._answered_produces(), *self._new_requests()]
        return lines or ["unchanged"]

    # -- metadata

    def _do_topic(self, words: list[str]) -> None:
        given = options(words)
        replicas = numbers(given["replicas"])
        isr = numbers(given.get("isr", given["replicas"]))
        self._state = state(replicas, isr, leader_epoch=1, partition_epoch=0)
        self._publish(given.get("min-isr"))

    def _do_image(self, words: list[str]) -> None:
        given = options(words)
        before = self._now()
        leader, epoch = before.leader, before.leader_epoch
        if "leader" in given:
            leader = BrokerId(-1 if given["leader"] == ["-"] else int(given["leader"][0]))
            epoch = LeaderEpoch(epoch + 1)
        basis = before.basis
        if "recovering" in given:
            basis = ElectionBasis(Basis.UNCLEAN, leader, epoch, -1, -1, -1, ())
        changed = "leader" in given or "isr" in given
        self._state = state(
            list(before.replicas),
            numbers(given["isr"]) if "isr" in given else list(before.isr),
            leader=leader,
            leader_epoch=epoch,
            partition_epoch=before.partition_epoch + changed,
            basis=basis,
        )
        self._publish(given.get("min-isr"))

    def _publish(self, min_isr: list[str] | None) -> None:
        self._rig.set_partition(self._now())
        if min_isr is not None:
            self._rig.set_config("min.insync.replicas", min_isr[0])
        self._rig.publish()

    def _now(self) -> PartitionRegistration:
        if self._state is None:
            raise ScriptError("the first command is: topic replicas N ...")
        return self._state

    def _do_fence(self, words: list[str]) -> None:
        self._register(int(words[0]), fenced=True)

    def _do_unfence(self, words: list[str]) -> None:
        self._register(int(words[0]), fenced=False)

    def _do_return(self, words: list[str]) -> None:
        broker = int(words[0])
        self._epochs_before[broker] = self._epochs[broker]
        self._epochs[broker] += 100
        self._register(broker, fenced=False)

    def _register(self, broker: int, fenced: bool) -> None:
        self._rig.set_broker(broker, self._epochs[broker], fenced=fenced)
        self._rig.publish()

    # -- clients and followers

    def _do_produce(self, words: list[str]) -> None:
        acks, producer = "all", {}
        if "acks" in words:
            acks = words[words.index("acks") + 1]
        if "producer" in words:
            at = words.index("producer")
            producer = {"producer_id": int(words[at + 1]), "producer_epoch": 0, "base_sequence": int(words[at + 3])}
        self._produced += 1
        result = self._rig.produce(ACKS[acks], batch(int(words[0]), **producer), timeout_ms=60_000)
        self._produces.append((self._produced, result))

    def _do_fetch(self, words: list[str]) -> str | None:
        broker, offset, partition = int(words[0]), int(words[2]), self._partition
        named = dict(zip(words[3::2], words[4::2], strict=False))
        known_epochs = partition.log.epochs
        last = named.get("last-epoch", known_epochs.epoch_for_offset(offset - 1) if offset else -1)
        result = self._rig.fetch(
            offset,
            replica=broker,
            replica_epoch=self._epochs_before[broker] if "of-before" in words else self._epochs[broker],
            leader_epoch=int(named.get("leader-epoch", partition.leader_epoch)),
            last_fetched_epoch=int(-1 if last is None else last),
        )
        response = answer_of(result)
        if response is None:
            return None
        (data,) = response.responses[0].partitions
        if data.error_code:
            return f"fetch refused {ErrorCode(data.error_code).name}"
        if data.diverging_epoch.epoch >= 0:
            return f"fetch answered diverging epoch {data.diverging_epoch.epoch} end {data.diverging_epoch.end_offset}"
        return None

    def _do_wait(self, words: list[str]) -> None:
        self._rig.env.advance(int(words[0]))

    # -- the controller

    def _do_confirm(self, words: list[str]) -> None:
        asked = self._asked()
        before = self._now()
        isr = [member.broker_id for member in asked.request.topics[0].partitions[0].new_isr_with_epochs]
        epoch = PartitionEpoch(before.partition_epoch + 1)
        self._state = state(list(before.replicas), isr, before.leader, before.leader_epoch, epoch, basis=before.basis)
        self._answer(
            asked,
            leader_id=before.leader,
            leader_epoch=before.leader_epoch,
            isr=isr,
            partition_epoch=epoch,
            # of the next image: broker 1 does not have it yet
            committed_offset=self._rig.image.offset + 1,
        )

    def _do_refuse(self, words: list[str]) -> None:
        self._answer(self._asked(), error_code=ErrorCode[words[0]])

    def _asked(self) -> Sent:
        try:
            return self._rig.env.take("alter-partition")
        except LookupError as error:
            raise ScriptError("broker 1 asks for no ISR") from error

    def _answer(self, asked: Sent, **data: Any) -> None:
        partition = AlterPartitionResponse.PartitionData(partition_index=0, **data)
        topic = AlterPartitionResponse.TopicData(topic_id=TOPIC_IDS["foo"], partitions=[partition])
        asked.on_result(AlterPartitionResponse(topics=[topic]))

    # -- the leader of broker 1

    def _do_records(self, words: list[str]) -> None:
        given = dict(zip(words[1::2], map(int, words[2::2]), strict=True))
        end = self._partition.log.log_end_offset
        records = batch(int(words[0]), base_offset=end, leader_epoch=given["epoch"])
        self._lead(high_watermark=given.get("hw", 0), records=memoryview(records))

    def _do_no_records(self, words: list[str]) -> None:
        self._lead(high_watermark=int(words[1]) if words else 0)

    def _do_diverging(self, words: list[str]) -> None:
        diverging = FetchResponse.EpochEndOffset(epoch=int(words[1]), end_offset=int(words[3]))
        self._lead(high_watermark=0, diverging_epoch=diverging)

    def _lead(self, **data: Any) -> None:
        leader = f"broker{self._partition.leader}"
        fetches = [sent for sent in self._rig.env.sent if sent.channel == "replica-fetch-0" and sent.to.host == leader]
        if not fetches:
            raise ScriptError(f"broker 1 fetches nothing from {leader}")
        fetch = fetches[0]
        self._rig.env.sent.remove(fetch)
        partition = FetchResponse.PartitionData(partition_index=0, **data)
        topic = FetchResponse.FetchableTopicResponse(topic_id=TOPIC_IDS["foo"], partitions=[partition])
        fetch.on_result(FetchResponse(session_id=0, responses=[topic]))
        self._rig.env.advance(1)

    def _do_disk_fails(self, words: list[str]) -> None:
        directories = self._rig.broker.replicas.directories
        directories.file_failed(
            self._partition.log.dir_path + "/00000000000000000000.log", OSError("input/output error")
        )
        self._rig.env.advance(1)

    # -- what is shown

    @property
    def _partition(self) -> Partition:
        return self._rig.partition()

    def _shown(self) -> str:
        found = self._rig.broker.replicas.partition((TOPIC_IDS["foo"], 0))
        if found is None:
            return "none"
        offsets = f"hw {found.high_watermark}  end {found.log.log_end_offset}"
        if found.offline:
            return "offline"
        if found.role is ReplicaRole.LEADER:
            return f"leader epoch {found.leader_epoch}  isr {listed(found.isr.committed)}  {offsets}"
        leader = found.leader if found.leader >= 0 else "-"
        return f"{found.role.value} of {leader}  epoch {found.leader_epoch}  {offsets}"

    def _answered_produces(self) -> list[str]:
        lines, waiting = [], []
        for number, result in self._produces:
            response = answer_of(result)
            if response is None:
                waiting.append((number, result))
                continue
            (data,) = response.responses[0].partition_responses
            error = ErrorCode(data.error_code).name
            at = f"  offset {data.base_offset}" if data.base_offset >= 0 else ""
            lines.append(f"produce {number} answered {error}{at}")
        self._produces = waiting
        return lines

    def _new_requests(self) -> list[str]:
        new = [sent for sent in self._rig.env.sent if sent not in self._shown_requests]
        self._shown_requests = list(self._rig.env.sent)
        lines = []
        for sent in new:
            if sent.channel == "alter-partition":
                members = sent.request.topics[0].partitions[0].new_isr_with_epochs
                lines.append(
                    f"asks for isr {listed([m.broker_id for m in members])}"
                    f"  broker epochs {listed([m.broker_epoch for m in members])}"
                )
            elif sent.channel == "replica-fetch-0" and sent.request.topics:
                (asked,) = sent.request.topics[0].partitions
                lines.append(f"fetches at {asked.fetch_offset}  last epoch {asked.last_fetched_epoch}")
        return lines


COMMANDS = tuple(sorted(name[4:].replace("_", "-") for name in vars(Script) if name.startswith("_do_")))


def options(words: list[str]) -> dict[str, list[str]]:
    """`isr 1 2 min-isr 2` as lists by their names. Raises ScriptError for other words."""
    found: dict[str, list[str]] = {}
    last: list[str] | None = None
    for word in words:
        if word in WORDS:
            last = found[word] = []
        elif last is None:
            raise ScriptError(f"{word} is none of {', '.join(WORDS)}")
        else:
            last.append(word)
    return found


def numbers(words: list[str]) -> list[int]:
    return list(ids([int(word) for word in words if word != "-"]))


def listed(values: Sequence[int]) -> str:
    return " ".join(map(str, values)) or "-"
