"""What must hold after every event, as small functions: each returns None, or one sentence that says what is broken.

They compare states that the caller passes: what the controllers committed (`PartitionRegistration`), what a broker has
(`Partition` with its log), and what clients were answered.

    T1   states are in their domain, fetchers agree with them     T9   reads do not change (`history_checks`)
    T2   ISR and ELR are consistent                               T10  no replica that may be needed is forgotten
    T3   a leader counts every replica that may lead              T11  after an unclean stop no replica joins unnoticed
    T4   members of ISR and ELR hold what is committed            T12  a new leader does not answer before it knows
    T5   leaders hold what was acknowledged                       T13  compaction stays below the high watermark
    T6   replicas agree on what is committed                      T14  disks hold no replicas that are not assigned
    T7   applied metadata is a prefix of the committed            T15  a recovery waits for the disk that has the most
    T8   what is committed stays; what gives it up, and when      T16  disks lose a log only by a committed removal
    R1   committed metadata stay                                  T17  a success says that records are committed
    R2   one leader per partition and leader epoch                T18  a start that fails changes nothing
    T20  levels are supported by all nodes                        T19  new partitions use the racks

*True high watermark*: the highest high watermark that a leader exposed in the current lineage. A lossy-basis election
starts a lineage, at the winner's log end or where the winner's log diverges from the lineage before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple, Protocol

from heirlog.broker.isr import CommittedPartitionState, Isr
from heirlog.broker.partition import ReplicaRole
from heirlog.metadata.state import RECOVERY_VERSION, PartitionRegistration


class EpochsView(Protocol):
    """What is read of `heirlog.storage.epochs.LeaderEpochCache`."""

    @property
    def entries(self) -> list[tuple[int, int]]: ...

    def epoch_for_offset(self, offset: int) -> int: ...


class LogView(Protocol):
    """What is read of `heirlog.storage.log.Log`."""

    @property
    def log_start_offset(self) -> int: ...

    @property
    def log_end_offset(self) -> int: ...

    @property
    def epochs(self) -> EpochsView: ...


class Replica(Protocol):
    """What is read of `heirlog.broker.partition.Partition`."""

    @property
    def role(self) -> ReplicaRole: ...

    @property
    def leader(self) -> int: ...

    @property
    def leader_epoch(self) -> int: ...

    @property
    def high_watermark(self) -> int: ...

    @property
    def log(self) -> LogView: ...


class Watermark(NamedTuple):
    """The true high watermark, and the leader epoch of the record just below it."""

    offset: int
    epoch: int


def t1_state_is_in_its_domain(broker: int, replica: Replica, fetched: bool, shutting_down: bool) -> str | None:
    """A leader does not fetch; a follower with a leader does (unless it is shutting down); offsets are in order.

    fetched: a fetcher of this broker copies the partition.
    """
    log, role, leader = replica.log, replica.role, replica.leader
    if not log.log_start_offset <= replica.high_watermark <= log.log_end_offset:
        return (
            f"broker {broker}: the high watermark {replica.high_watermark} lies outside the log "
            f"{log.log_start_offset} - {log.log_end_offset}"
        )
    if role is ReplicaRole.LEADER:
        if leader != broker:
            return f"broker {broker} leads while it names broker {leader} as the leader"
        if fetched:
            return f"broker {broker} leads and fetches at the same time"
    elif role is ReplicaRole.FOLLOWER:
        if leader == broker:
            return f"broker {broker} follows itself"
        if leader >= 0 and not fetched and not shutting_down:
            return f"broker {broker} follows broker {leader} in epoch {replica.leader_epoch} and no fetcher copies"
    if (role is ReplicaRole.IDLE or leader < 0) and fetched:
        return f"broker {broker} fetches a partition that has no leader"
    return None


def t1_fenced_broker_does_not_lead(broker: int, fenced: bool, replica: Replica) -> str | None:
    """A broker whose own metadata say that it is fenced leads no partition."""
    if fenced and replica.role is ReplicaRole.LEADER:
        return f"broker {broker} leads in epoch {replica.leader_epoch} while its own metadata say that it is fenced"
    return None


def t2_isr_and_elr_are_consistent(state: PartitionRegistration, min_isr: int, fenced: Collection[int]) -> str | None:
    """With ELR on: ISR and ELR are disjoint subsets of the replicas, an ISR of min ISR size needs no ELR, and a fenced
    broker is in no ISR.
    """
    isr, elr = set(state.isr), set(state.elr)
    if len(isr) != len(state.isr) or len(elr) != len(state.elr):
        return f"a broker is listed twice: ISR {state.isr}, ELR {state.elr}"
    if isr & elr:
        return f"ISR {state.isr} and ELR {state.elr} share a member"
    if not (isr | elr) <= set(state.replicas):
        return f"ISR {state.isr} or ELR {state.elr} names a broker that is no replica of {state.replicas}"
    if len(isr) >= min_isr and elr:
        return f"the ISR {state.isr} has min ISR ({min_isr}) and the ELR {state.elr} is not empty"
    fenced_members = [member for member in state.isr if member in fenced]
    if fenced_members:
        return f"the ISR {state.isr} holds fenced brokers {fenced_members}"
    if state.leader >= 0 and state.leader not in isr:
        return f"the leader {state.leader} is not in the ISR {state.isr}"
    return None


def t3_leader_counts_isr_and_elr(broker: int, isr: Isr, state: PartitionRegistration, min_isr: int) -> str | None:
    """For a leader that knows the committed state.

    Its maximal ISR has every replica that may be elected, while records commit. If it has no change in flight, its ISR
    is the committed one.
    """
    if isinstance(isr, CommittedPartitionState) and set(isr.committed) != set(state.isr):
        return (
            f"the leader {broker} takes {isr.committed} for the ISR, {state.isr} is committed, and it asked for nothing"
        )
    if len(state.isr) >= min_isr:
        missing = [member for member in (*state.isr, *state.elr) if member not in isr.maximal]
        if missing:
            return f"the leader {broker} commits without {missing}, who may be elected: it counts {isr.maximal}"
    return None


def t4_member_holds_what_is_committed(
    broker: int, state: PartitionRegistration, true: Watermark, log: LogView
) -> str | None:
    """A member of ISR or ELR, registered in its current incarnation, has every record below the true high watermark."""
    if broker not in state.isr and broker not in state.elr:
        return None
    true_offset = true.offset
    if log.log_end_offset < true_offset:
        broken = f"ends at {log.log_end_offset}, below the high watermark {true_offset} that a leader exposed"
    elif true_offset > log.log_start_offset and (epoch := log.epochs.epoch_for_offset(true_offset - 1)) != true.epoch:
        broken = (
            f"has a record of epoch {epoch} at offset {true_offset - 1}, where one of epoch {true.epoch} was committed"
        )
    else:
        return None
    return f"broker {broker} in the {'ISR' if broker in state.isr else 'ELR'} {broken}"


def t5_leader_holds_what_was_acknowledged(broker: int, acknowledged_end: int, log: LogView) -> str | None:
    """The leader of the current epoch has everything that was acknowledged with acks=all in its lineage."""
    if log.log_end_offset < acknowledged_end:
        return (
            f"the leader {broker} ends at {log.log_end_offset}; records up to {acknowledged_end} were acknowledged "
            "with acks=all"
        )
    return None


def t6_batch_is_the_same(broker: int, before: tuple[int, int, int], now: tuple[int, int, int]) -> str | None:
    """before, now: (base offset, leader epoch, CRC) of what two replicas hold below their high watermarks there."""
    if before != now:
        return (
            f"broker {broker} holds, below its high watermark, at offset {now[0]} a batch of epoch {now[1]} "
            f"(CRC {now[2]:08x}), and another replica at {before[0]} one of epoch {before[1]} (CRC {before[2]:08x})"
        )
    return None


def t7_metadata_is_a_prefix(node: str, applied_offset: int, committed_end: int) -> str | None:
    """No node applies metadata that is not committed."""
    if applied_offset >= committed_end:
        return f"{node} has applied metadata up to offset {applied_offset}, committed is what is below {committed_end}"
    return None


def t8a_committed_records_stay(broker: int, held_end: int, end: int) -> str | None:
    """In one incarnation, or over a clean stop: what a replica held below the true high watermark of the lineage."""
    if end < held_end:
        return (
            f"broker {broker} held what was committed up to {held_end}, and ends at {end} without having lost its disk"
        )
    return None


def t8b_enough_members_were_lost(leader: int, lost: Collection[int], needed: int, taken_out: bool) -> str | None:
    """A lossy-basis election that no operator asked for, under Balanced or None.

    lost: members of ISR and ELR that registered uncleanly or lost their directory since the ISR had its min ISR, which
    was `needed` then. taken_out: some other event took a member out of both lists since.
    """
    if len(lost) < needed and not taken_out:
        return (
            f"broker {leader} was elected on a lossy basis after only {sorted(lost)} had lost data; the min ISR was "
            f"{needed}"
        )
    return None


def t10_members_stay_listed(before: PartitionRegistration, after: PartitionRegistration, min_isr: int) -> str | None:
    """With the recovery manager on, for a change without a lossy election: no replica is forgotten.

    While the ISR is below min ISR, every replica that may hold committed records stays in one of the three lists,
    except one that moved to another directory: its disk was replaced.
    """
    if len(after.isr) >= min_isr:
        return None
    stays = {*after.isr, *after.elr, *after.last_known_elr}
    forgotten = [
        member
        for member in (*before.isr, *before.elr, *before.last_known_elr)
        if member not in stays
        and member in after.replicas
        and before.directory_of(member) == after.directory_of(member)
    ]
    if forgotten:
        return (
            f"nothing remembers {forgotten} any more: ISR {before.isr}, ELR {before.elr}, LastKnownELR "
            f"{before.last_known_elr} became {after.isr}, {after.elr}, {after.last_known_elr} (min ISR {min_isr})"
        )
    return None


def t11_returned_uncleanly(broker: int, state: PartitionRegistration, not_caught_up: bool) -> str | None:
    """After an unclean stop, a broker is in neither ISR nor ELR until it has caught up."""
    if not not_caught_up:
        return None
    for list_name, members in (("ISR", state.isr), ("ELR", state.elr)):
        if broker in members:
            return f"broker {broker} is in the {list_name} {members} and has not caught up since it stopped uncleanly"
    return None


def t12_latest_was_known(offset: int, leader_epoch: int, epoch_start: int) -> str | None:
    """An answer to ListOffsets(latest) by a leader whose high watermark had reached the start of its epoch."""
    if offset < epoch_start:
        return f"the leader of epoch {leader_epoch}, which begins at {epoch_start}, said that latest is {offset}"
    return None


def t12_joiner_has_reached_the_epoch(broker: int, joiner: int, joiner_end: int, epoch_start: int) -> str | None:
    """A follower that the leader proposes for the ISR has everything that the leader had at the start of its epoch."""
    if joiner_end < epoch_start:
        return f"the leader {broker} asks for {joiner}, which ends at {joiner_end}; its epoch begins at {epoch_start}"
    return None


def t13_compaction_is_below_the_high_watermark(broker: int, clean_offset: int, high_watermark: int) -> str | None:
    """Compaction must not use records that may still be truncated."""
    if clean_offset > high_watermark:
        return f"broker {broker} compacted up to {clean_offset}, above its high watermark {high_watermark}"
    return None


def t14_disks_hold_what_is_assigned(
    broker: int, held: Collection[tuple[str, int, bytes | None]], assigned: Collection[tuple[str, int, bytes | None]]
) -> str | None:
    """Checked when a run is quiet again: (topic, partition, topic id) of a broker's logs, and of its replicas."""
    not_assigned = sorted((topic, index) for topic, index, topic_id in set(held) - set(assigned))
    if not_assigned:
        return f"broker {broker} still has logs of partitions that are not its own, or no more: {not_assigned}"
    missing = sorted((topic, index) for topic, index, topic_id in set(assigned) - set(held))
    if missing:
        return f"broker {broker} has no log for {missing}"
    return None


def t15_winner_holds_the_most(winner: int, kept_end: int, held: Mapping[int, int]) -> str | None:
    """A recovery under Balanced.

    kept_end: the offset up to which the winner's log has the committed records. held: the same for the disk of every
    other assigned replica that the recovery had to wait for, whether it runs or not.
    """
    for broker, end in sorted(held.items()):
        if end > kept_end:
            return (
                f"broker {winner} won a recovery with what was committed up to {kept_end}; the disk of broker "
                f"{broker}, which was still to be waited for, has it up to {end}"
            )
    return None


def t16_log_was_given_up(broker: int, topic: str, partition: int, given_up: bool) -> str | None:
    """given_up: a committed record removed the topic, or took the replica away from this broker."""
    if not given_up:
        return f"broker {broker} deleted its log of {topic}-{partition}, which no committed record has taken away"
    return None


def t16_metadata_are_not_older(broker: int, did: str, applied_end: int, newest_end: int) -> str | None:
    """For a broker that removes or truncates a log: the metadata that it has applied now, and the newest ever."""
    if applied_end < newest_end:
        return f"broker {broker} {did} by metadata up to {applied_end}; it had applied metadata up to {newest_end}"
    return None


def t17_success_is_committed(broker: int, end: int | None, high_watermark: int) -> str | None:
    """Of an acks=all Produce that is answered with a success now.

    end: one past the offset of its last record in the leader's log; None: they are not there.
    """
    if end is None:
        return f"broker {broker} answered that records are written which are not in its log"
    if end > high_watermark:
        return f"broker {broker} answered that records up to {end} are written; its high watermark is {high_watermark}"
    return None


def t18_start_changed_nothing(
    broker: int, starts: int, before: Mapping[str, int], now: Mapping[str, int]
) -> str | None:
    """before, now: checksums of the files of a broker that stopped cleanly, and was started `starts` times since
    without being registered.
    """
    changed = sorted(path for path in {*before, *now} if before.get(path) != now.get(path))
    if changed:
        return (
            f"broker {broker} stopped cleanly; {starts} starts without a registration have changed "
            f"{', '.join(changed[:3])}{' and others' if len(changed) > 3 else ''}"
        )
    return None


def t19_replicas_use_the_racks(replicas: Collection[int], rack_of: Mapping[int, str | None]) -> str | None:
    """Of a new partition that the controller placed. rack_of: of every registered broker.

    Its replicas are in as many racks as possible. If one rack has two replicas more than another rack, the other rack
    has no broker left.
    """
    count = {rack: sum(rack_of.get(broker) == rack for broker in replicas) for rack in rack_of.values()}
    free = {rack_of[broker] for broker in rack_of if broker not in replicas}
    for rack, replicas_there in count.items():
        poorer = sorted(str(other) for other in free if count[other] < replicas_there - 1)
        if poorer:
            return f"replicas {tuple(replicas)}: {replicas_there} are in rack {rack}, fewer in {poorer}"
    return None


def t20_levels_are_supported(
    levels: Mapping[str, int], supported: Mapping[str, Mapping[str, tuple[int, int]]]
) -> str | None:
    """levels: of the cluster's features. supported: per registered node, the lowest and the highest level of each
    feature.

    Brokers need not know heirlog.recovery.version: one that does not counts as one that has not answered.
    """
    for node, ranges in sorted(supported.items()):
        for name, level in sorted(levels.items()):
            lowest, highest = ranges.get(name, (0, 0))
            optional = name == RECOVERY_VERSION and node.startswith("broker")
            if not lowest <= level <= highest and not optional:
                return f"{name} is at level {level}; {node} supports {lowest} to {highest}"
    return None


def r1_committed_metadata_stays(
    before: Iterable[tuple[int, int]], now: dict[int, int], start: int, end: int
) -> str | None:
    """Every batch that was committed is still in the controller's log, unchanged.

    before: (base offset, checksum) of what was committed; now: the same of the log, which reaches from start to end. A
    snapshot covers what is below start.
    """
    for base_offset, checksum in before:
        if base_offset < start:
            continue
        found = now.get(base_offset)
        if found is None:
            return f"committed metadata at offset {base_offset} are gone; the log ends at {end}"
        if found != checksum:
            return f"committed metadata at offset {base_offset} have changed"
    return None


def r2_one_result_per_epoch(before: PartitionRegistration, after: PartitionRegistration) -> str | None:
    """A committed record names a leader exactly if it begins the next leader epoch."""
    if after.leader_epoch not in (before.leader_epoch, before.leader_epoch + 1):
        return f"the leader epoch went from {before.leader_epoch} to {after.leader_epoch}"
    if after.leader != before.leader and after.leader_epoch == before.leader_epoch:
        return f"leader epoch {after.leader_epoch} had the leader {before.leader} and now has {after.leader}"
    return None


def r2_leads_as_elected(broker: int, leader_epoch: int, elected: int | None) -> str | None:
    """elected: the leader that the committed record of that epoch names; None if there is no such record."""
    if elected != broker:
        return (
            f"broker {broker} leads in epoch {leader_epoch}, whose leader is {'nobody' if elected is None else elected}"
        )
    return None
