"""What a switch of the recovery manager does to LastKnownELR, whose meaning changes with the switch.

`heirlog.recovery.version` is 1 (on) or 0 (off) for the whole cluster. The list has a form for each (eligible.py):

    off    the last known leader, which may be elected from this list alone
    on     all lost replicas; if the list is long enough, they are the quorum of Balanced

A list is dangerous if it is read by the other rule. A follower that was lost would be elected as if it had been the
last leader. A list of one leader would hide the replicas that were lost before it.

    on -> off    the last leader stays on the list, if the image knows it (PartitionRegistration.last_leader). Otherwise
                 the list is emptied. Leaders that Apache Kafka's rules elect then are elected in the same batch; a
                 partition without ISR, ELR and last leader waits for an operator
    off -> on    no record says which replicas were lost. So if the ISR is below min ISR, the list names every assigned
                 replica outside ISR and ELR: each of them may have been lost, and has to answer. As always, the list
                 is emptied when the ISR reaches min ISR

With the ELR feature off there are no lists, and nothing is rewritten. Once that feature is switched on, lists name only
replicas that are lost from then on. A short list proves nothing, and every assigned replica must answer. But a replica
that is being added and is not on a list counts as one that was never a member (decision.py). It may have been a member
while there were no lists; so with the manager on, `begun` puts it on the list.
"""

from __future__ import annotations

from collections.abc import Iterator

from heirlog.controller.leadership import Changes, Leadership
from heirlog.controller.partition_change import TargetState
from heirlog.metadata.apply import merged
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.image import Image
from heirlog.metadata.state import Ids, PartitionRegistration
from heirlog.protocol.types import PartitionKey, Uuid


def switched(image: Image, static: StaticConfig, on: bool) -> Changes:
    """Rewrite every LastKnownELR in its new meaning. Looks at every partition; apply all changes together."""
    leadership, changes = Leadership(image, static, manager_enabled=on), Changes()
    for topic_id in sorted(image.partitions):
        for partition, state in sorted(image.partitions[topic_id].items()):
            min_isr = leadership.min_isr(topic_id, state.replicas)
            listed = _who_may_be_lost(state, min_isr) if on else _last_leader(state)
            if listed != state.last_known_elr or not state.has_leader:
                changes.add(leadership.change(topic_id, partition, TargetState(last_known=listed)))
    return changes


def begun(image: Image, static: StaticConfig) -> Changes:
    """Write lists where an adding replica may have been lost, when ELR is switched on with the manager on."""
    leadership, changes = Leadership(image, static, manager_enabled=True, elr_enabled=True), Changes()
    for topic_id in sorted(image.partitions):
        for partition, state in sorted(image.partitions[topic_id].items()):
            listed = _who_may_be_lost(state, leadership.min_isr(topic_id, state.replicas))
            if state.adding and listed:
                changes.add(leadership.change(topic_id, partition, TargetState(last_known=listed)))
    return changes


def without_candidates(image: Image, changes: Changes) -> Iterator[PartitionKey]:
    """The partitions that `changes` of a switch to off leave without a replica known to be complete."""
    changed = {(Uuid(record.topic_id), record.partition_id): record for record in changes.records}
    for topic_id, partition in image.leaderless():
        state, record = image.partitions[topic_id][partition], changed.get((topic_id, partition))
        after = state if record is None else merged(image, state, record)
        if not (after.has_leader or after.isr or after.elr or after.last_known_elr):
            yield topic_id, partition


def _last_leader(state: PartitionRegistration) -> Ids:
    return tuple([replica for replica in state.last_known_elr if replica == state.last_leader])


def _who_may_be_lost(state: PartitionRegistration, min_isr: int) -> Ids:
    """Replicas that may be lost; those that are known to be lost are first."""
    if len(state.isr) >= min_isr:
        return ()
    members = {*state.isr, *state.elr}
    return tuple([each for each in dict.fromkeys((*state.last_known_elr, *state.replicas)) if each not in members])
