"""`heirlog elect`: choose leaders on purpose (KIP-460, KIP-966)."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from heirlog.cli import elections
from heirlog.cli.connect import DEFAULT_BOOTSTRAP, BootstrapServer, connected
from heirlog.cli.elections import ElectionType, TopicPartition
from heirlog.cli.errors import EXIT_FAILED, CommandError, UsageError
from heirlog.cli.names import PlaceNames, partitions_named
from heirlog.cli.next_steps import with_next_step
from heirlog.cli.option_groups import grouped
from heirlog.cli.render import Json, show_rows
from heirlog.protocol.errors import ErrorCode

FORM = '{"partitions": [{"topic": "t", "partition": 0}]}'
FORM_WITH_LEADER = '{"partitions": [{"topic": "t", "partition": 0, "desiredLeader": 1}]}'


@dataclass(frozen=True, slots=True)
class PartitionOptions:
    """What names the partitions, and of a designation their leaders."""

    places: PlaceNames = None
    topic: Annotated[str | None, typer.Option(help="Topic; with --partition.")] = None
    partition: Annotated[int | None, typer.Option(min=0, help="Partition; with --topic.")] = None
    desired_leader: Annotated[
        int | None,
        typer.Option(min=0, help="For a designation: the broker that becomes leader; with --topic and --partition."),
    ] = None
    all_topic_partitions: Annotated[bool, typer.Option("--all-topic-partitions")] = False
    path_to_json_file: Annotated[Path | None, typer.Option(help=f"{FORM}, for a designation {FORM_WITH_LEADER}")] = None

    def given(self, kind: ElectionType) -> dict[TopicPartition, int]:
        """The partitions that can be named without the cluster, with the leader of each (0 if it is no designation).

        Raises CommandError.
        """
        by_name = self.topic is not None or self.partition is not None
        file = self.path_to_json_file
        if bool(self.places) + by_name + self.all_topic_partitions + (file is not None) != 1:
            raise UsageError(
                "name partitions by TOPIC or TOPIC:0,1, by --topic and --partition, --all-topic-partitions or "
                "--path-to-json-file"
            )
        designates = kind is ElectionType.DESIGNATION
        if self.desired_leader is not None and not (designates and (by_name or self.places)):
            raise UsageError("--desired-leader needs --election-type designation and the name of a topic")
        if self.all_topic_partitions and designates:
            raise UsageError("a designation names a leader for each partition; --all-topic-partitions does not")
        if file is not None:
            return _from_file(file, designates)
        if designates and self.desired_leader is None:
            raise UsageError("a designation needs --desired-leader")
        if not by_name:
            return {}
        if self.topic is None or self.partition is None:
            raise UsageError("--topic and --partition go together")
        return {(self.topic, self.partition): self.desired_leader or 0}


@grouped
def elect(
    election_type: Annotated[
        ElectionType,
        typer.Option(
            case_sensitive=False,
            help="preferred loses nothing; longest_log_balanced waits for every replica that may hold more records; "
            "the others may lose acknowledged records.",
        ),
    ],
    partitions: PartitionOptions,
    now: Annotated[
        bool, typer.Option("--now", help="Longest log: do not wait for replicas that are outside the quorum.")
    ] = False,
    wait: Annotated[
        float,
        typer.Option(
            min=0, metavar="SECONDS", help="Longest log: how long to wait for elections that cannot finish at once."
        ),
    ] = 30.0,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Elect the preferred leader of partitions, or a leader for partitions that have none."""
    wanted = partitions.given(election_type)
    with connected(bootstrap_server) as client:
        if partitions.places:
            wanted = dict.fromkeys(partitions_named(client, partitions.places), partitions.desired_leader or 0)
        chosen = None if partitions.all_topic_partitions else list(wanted)
        desired = wanted if election_type is ElectionType.DESIGNATION else None
        results = elections.run(client, election_type, chosen, desired=desired, skip_wait=now, wait_s=wait)
    show_results(elections.rows_of(results), as_json)


def show_results(rows: list[dict[str, Any]], as_json: bool) -> None:
    """Raises typer.Exit if an election failed."""
    if rows or as_json:
        columns = {"topic": "Topic", "partition": "Partition", "result": "Result", "message": "Message"}
        show_rows(columns, rows, as_json)
    else:
        # asked for all partitions, the controller names only those with something to elect
        print("no partition needs this election")
    # a leader that is the wanted one already is no failure, as in Kafka's tool
    fine = ("ELECTED", ErrorCode.ELECTION_NOT_NEEDED.name)
    failed = [row for row in rows if row["result"] not in fine]
    if failed:
        first = failed[0]
        sentence = (
            f"heirlog: {len(failed)} of {len(rows)} elections failed, first {first['topic']}-{first['partition']}: "
            f"{first['result']} {first['message']}"
        )
        typer.echo(with_next_step(sentence, ErrorCode[first["result"]]), err=True)
        raise typer.Exit(EXIT_FAILED)


def _from_file(file: Path, designates: bool) -> dict[TopicPartition, int]:
    """With the desired leader of each, 0 where there is none."""
    form = FORM_WITH_LEADER if designates else FORM
    try:
        content: Any = json.loads(file.read_text(encoding="utf-8"))
        entries = [
            ((str(entry["topic"]), int(entry["partition"])), int(entry["desiredLeader"]) if designates else 0)
            for entry in content["partitions"]
        ]
    except OSError as error:
        raise CommandError(f"cannot read {file}: {error.strerror}") from error
    except (ValueError, TypeError, KeyError) as error:
        raise CommandError(f"{file} is not of the form {form}") from error
    twice = [name for name, times in Counter(name for name, _ in entries).items() if times > 1]
    if twice:
        raise CommandError(f"{file} names {twice[0][0]}-{twice[0][1]} twice; name each partition once")
    return dict(entries)
