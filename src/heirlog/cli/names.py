"""What a command is for, by name: as an argument, with the option that Kafka's tools have, or a regular expression."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from heirlog.cli import complete
from heirlog.cli.errors import CommandError, UsageError

if TYPE_CHECKING:
    from heirlog.blocking import Client

T = TypeVar("T")
Names = Annotated[
    list[str] | None, typer.Argument(metavar="TOPIC", help="Topic names.", autocompletion=complete.topics)
]
NamedTopics = Annotated[
    list[str] | None, typer.Option("--topic", help="A topic name; may be repeated.", autocompletion=complete.topics)
]
PlaceNames = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TOPIC[:0,1]",
        help="All partitions of a topic, or some.",
        show_default=False,
        autocompletion=complete.topics,
    ),
]
Place = Annotated[
    str | None,
    typer.Argument(
        metavar="TOPIC:PARTITION", help="The partition.", show_default=False, autocompletion=complete.topics
    ),
]
Include = Annotated[
    str | None, typer.Option(metavar="REGEX", help="All topics that this regular expression matches as a whole.")
]


def given_once(what: str, metavar: str, argument: T | None, option: str, value: T | None) -> T:
    """The one that is named, as an argument or with an option. Raises UsageError for none, and for both."""
    if argument is None and value is not None:
        return value
    if argument is None or value is not None:
        raise UsageError(f"name one {what}: as the argument {metavar}, or with {option}")
    return argument


def one_partition(place: str | None, topic: str | None, partition: int | None) -> tuple[str, int]:
    """`orders:0`, or --topic and --partition. Raises UsageError."""
    if place is None and topic is not None and partition is not None:
        return topic, partition
    name, _, number = (place or "").partition(":")
    if topic is not None or partition is not None or not (name and number.isdecimal()):
        raise UsageError("name one partition: as the argument TOPIC:PARTITION, or with --topic and --partition")
    return name, int(number)


def no_such_partition(topic: str, count: int, partition: int) -> str:
    """The sentence. count: how many the topic has."""
    there = f"partitions 0 to {count - 1}" if count > 1 else "partition 0 only"
    return f"{topic} has {there}, not {partition}"


def chosen_parts(option: str, text: str | None, known: Sequence[str]) -> list[str]:
    """The parts of a text with commas, each spelled as in `known`. Raises UsageError for one that is not there."""
    by_lower = {name.lower(): name for name in known}
    found = []
    for part in (text or "").split(","):
        if not part.strip():
            continue
        if part.strip().lower() not in by_lower:
            raise UsageError(f"{option} {part.strip()} does not exist; there are {', '.join(known)}")
        found.append(by_lower[part.strip().lower()])
    return found


def named(names: list[str] | None, topic: list[str] | None) -> list[str]:
    return [*(names or ()), *(topic or ())]


def at_least_one(names: list[str] | None, topic: list[str] | None) -> list[str]:
    """Raises UsageError."""
    wanted = named(names, topic)
    if not wanted:
        raise UsageError("name at least one topic, as TOPIC or --topic TOPIC")
    return wanted


def matching(found: Iterable[str], pattern: str | None) -> list[str]:
    """Those of the names that match as a whole, in order; all without a pattern. Raises UsageError."""
    if pattern is None:
        return sorted(found)
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise UsageError(f"--include {pattern} is not a regular expression: {error}") from error
    return [name for name in sorted(found) if expression.fullmatch(name)]


def some_matching(found: Iterable[str], pattern: str) -> list[str]:
    """Raises CommandError if there is none, UsageError."""
    names = matching(found, pattern)
    if not names:
        raise CommandError(f"no topic matches {pattern} as a whole; heirlog topics list shows what there is")
    return names


def partitions_named(client: Client, wanted: list[str]) -> list[tuple[str, int]]:
    """`orders`, `orders:0,2`. Raises UsageError, KafkaError."""
    named = {}
    for text in wanted:
        name, _, numbers = text.partition(":")
        if numbers and not all(part.isdecimal() for part in numbers.split(",")):
            raise UsageError(f"{text} is not of the form TOPIC or TOPIC:0,1,2")
        named[name] = [int(part) for part in numbers.split(",")] if numbers else None
    found = client.topics(named)
    for name, chosen in named.items():
        strange = sorted(set(chosen or ()) - set(found[name].partitions))
        if strange:
            raise CommandError(f"{name} has no partition {strange[0]}")
    return [(name, number) for name, chosen in named.items() for number in chosen or found[name].partitions]
