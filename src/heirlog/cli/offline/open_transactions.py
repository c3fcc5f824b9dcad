"""Open transactions in stopped logs that no coordinator's log in the same folders will end.

    newest value of each transactional id, of every copy of `__transaction_state`     what coordinators know
    open transactions of a partition's producers                                      what waits for a marker

A copy of `__transaction_state` may be older than the coordinator's own, or missing in these folders. So a transaction
that no copy lists is a note and no damage: `heirlog transactions find-hanging` asks the coordinators themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from heirlog.cli.offline.decode import Decoder, Stopped, UnknownFile
from heirlog.cli.offline.findings import Report
from heirlog.metadata.topic_name import TRANSACTIONS_TOPIC
from heirlog.storage.log import Log
from heirlog.storage.producers import NO_TRANSACTION

UNDECIDED = ("Ongoing", "PrepareCommit", "PrepareAbort")
"""States in which the coordinator still ends the transaction in its partitions."""


class Known(NamedTuple):
    """The newest value of a transactional id in one copy of its partition of `__transaction_state`."""

    transactional_id: str
    state: str
    partitions: frozenset[tuple[str, int]]


def known_to_coordinators(directories: Iterable[Path]) -> dict[int, list[Known]]:
    """By producer id. A copy that cannot be read on counts up to there."""
    found: dict[int, list[Known]] = {}
    for directory in directories:
        for copy in sorted(directory.glob(f"{TRANSACTIONS_TOPIC}-*")):
            newest: dict[str, dict[str, Any]] = {}
            try:
                for segment in sorted(copy.glob("*.log")):
                    for row in Decoder(str(segment)).rows():
                        if row.get("record") == "TransactionMetadata":
                            newest[row["transactional_id"]] = row
            except (Stopped, UnknownFile, OSError):
                pass
            for name, row in newest.items():
                if row["fields"] is not None:
                    found.setdefault(row["fields"]["producer_id"], []).append(_known(name, row))
    return found


def _known(name: str, row: dict[str, Any]) -> Known:
    partitions = row["fields"]["transaction_partitions"] or ()
    return Known(
        name,
        row["state"],
        frozenset((topic["topic"], index) for topic in partitions for index in topic["partition_ids"]),
    )


def note_open_transactions(report: Report, log: Log, known: Mapping[int, list[Known]]) -> None:
    """Those of the log that no coordinator's log will end."""
    for producer_id, state in sorted(log.producers.producers.items()):
        if state.transaction_start == NO_TRANSACTION:
            continue
        copies = known.get(producer_id, [])
        if any(each.state in UNDECIDED and (log.topic, log.partition) in each.partitions for each in copies):
            continue
        names = sorted({f"{each.transactional_id} is {each.state} there" for each in copies})
        report.note(
            "hanging-transaction",
            log.dir_path,
            f"{log.topic}-{log.partition}: a transaction of producer {producer_id}, epoch {state.epoch}, is open from "
            f"offset {state.transaction_start} on, and no log of {TRANSACTIONS_TOPIC} in these folders will end it"
            + (f" ({', '.join(names)})" if names else ""),
            "consumers of committed records wait at this offset; heirlog transactions find-hanging --topic "
            f"{log.topic} asks the coordinators, and heirlog transactions abort {log.topic}:{log.partition} "
            f"--start-offset {state.transaction_start} ends it",
            topic=log.topic,
            partition=log.partition,
            producer_id=producer_id,
            producer_epoch=state.epoch,
            start_offset=state.transaction_start,
            transactional_ids=sorted({each.transactional_id for each in copies}),
        )
