"""A consume-transform-produce loop: members of a group that write what they read, and their offsets, in transactions.

    the group assigns partitions --> stable committed offsets --> transaction: outputs, then offsets --> commit, abort
            ^                                ^                                                            |
            +-- removed from the generation  +------------------- aborted, or unknown --------------------+

Copiers read nothing. The records of an input partition are its offsets: an output value stands for one of them
(`TransactionAttempt.inputs`), and the next transaction begins at the offset that was committed last. So each offset
below the committed one must be in exactly one committed transaction (X12), through all changes of the owner.

A member that is removed inside a transaction continues it: its TxnOffsetCommit names the generation from before, and
must be refused (KIP-447).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count

from heirlog.client.call import Call, Pause
from heirlog.protocol.types import Endpoint
from heirlog.sim.clients.client import RETRY_MS
from heirlog.sim.clients.member import Member
from heirlog.sim.clients.transactional_producer import OFTEN
from heirlog.sim.clients.transactions import MustAbort, Restart, TransactionalId, TransactionRequests
from heirlog.sim.env import SimEnv
from heirlog.sim.group_history import GroupHistory
from heirlog.sim.history import History, TransactionAttempt

ABORTS_OF_10 = 2
INPUTS_MAX = 4
"""Per partition and transaction."""


class Copier(Member):
    """topic: whose offsets are committed. output: the topic that it writes."""

    def __init__(
        self,
        env: SimEnv,
        name: str,
        bootstrap: Sequence[Endpoint],
        topic: str,
        output: str,
        group_history: GroupHistory,
        now_ms: Callable[[], int],
        history: History,
        who: TransactionalId,
        first_value: int,
    ) -> None:
        super().__init__(env, name, bootstrap, topic, group_history, now_ms)
        self.topics.append(output)
        self._output = output
        self._transactions = TransactionRequests(self, history, who, count(first_value))
        self._is_initialized = False
        self._running = False
        """A transaction of this process is open, of this or of an earlier membership."""

    @property
    def ended(self) -> bool:
        """It has stopped, and nothing of it is on its way."""
        return self.stopped and not self._running

    def _assign_partitions(self, name: str, members: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """Any of them may get any partition: then it moves from one to the other while both are members."""
        assigned = super()._assign_partitions(name, members)
        shift = self.env.random.randrange(0, len(assigned))
        shares = list(assigned.values())
        return dict(zip(assigned, shares[shift:] + shares[:shift], strict=True))

    def _fetch_positions(self, mine: tuple[int, ...]) -> None:
        """Not while a transaction of this process is open, which may still commit: a program would do one after the
        other.
        """
        if not self._running:
            super()._fetch_positions(mine)
            return
        membership = self._membership_number
        again = self.env.call_later(
            RETRY_MS, lambda: self._fetch_positions(mine) if membership == self._membership_number else None
        )
        self._timers.append(again)

    def _commit(self) -> None:
        if self.stopped:
            return
        self._running = True
        membership, generation, member_id = self._membership_number, self.generation, self._membership.member_id
        found = dict(self.owned)

        def over(committed: dict[int, int] | None) -> None:
            self._running = False
            if membership != self._membership_number:
                return
            if committed is None:
                self._fetch_positions(tuple(sorted(found)))
            else:
                self.owned.update(committed)
                self._commit_later()

        def failed(error: Exception) -> None:
            self._is_initialized = False
            self.env.log("info", "copier-restarts", reason=str(error))
            self.env.call_later(RETRY_MS, lambda: over(None))

        self.driver.run(self._copy(found, generation, member_id), over, failed)

    def _copy(self, found: dict[int, int], generation: int, member_id: str) -> Call[dict[int, int] | None]:
        """One transaction. The offsets that it committed; None if they have to be looked up."""
        transactions, random = self._transactions, self.env.random
        try:
            if not self._is_initialized:
                yield from transactions.initialize()
                self._is_initialized = True
            attempt = transactions.begin()
            try:
                offsets = yield from self._write(attempt, found, generation, member_id)
            except MustAbort:
                yield from transactions.abort_and_continue(attempt)
                return None
            yield from self._maybe_sleep()
            commit = random.randrange(0, 10) >= ABORTS_OF_10
            yield from transactions.end(attempt, commit=commit)
        except (Restart, MustAbort) as error:
            raise OSError(str(error)) from error
        return offsets if commit else None

    def _write(
        self, attempt: TransactionAttempt, found: dict[int, int], generation: int, member_id: str
    ) -> Call[dict[int, int]]:
        transactions, random = self._transactions, self.env.random
        outputs = sorted(self.cluster.view.topics[self._output].partitions)
        offsets = {}
        for index, start in sorted(found.items()):
            end = start + random.randrange(1, INPUTS_MAX + 1)
            partition = (self._output, outputs[random.randrange(0, len(outputs))])
            yield from transactions.add([partition])
            yield from transactions.write(attempt, partition, [(index, offset) for offset in range(start, end)])
            offsets[index] = end
            yield from self._maybe_sleep()
        group = self.group_history.group
        yield from transactions.add_offsets(group)
        yield from transactions.commit_offsets(group, generation, member_id, self.topic, offsets)
        return offsets

    def _maybe_sleep(self) -> Call[None]:
        who, random = self._transactions.who, self.env.random
        if random.random() < 2 * who.sleeps:
            yield Pause(random.uniform(0.1, 1.0 if who.sleeps < OFTEN else 0.3) * who.timeout_ms / 1000)
