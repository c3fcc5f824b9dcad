"""`heirlog configs describe|alter`: configurations of topics, groups, brokers and their loggers, as kafka-configs does.

Whose they are is said in words (`topic t`), or as Kafka's tool does, at length (`--entity-type topics --entity-name t`)
or short (`--topic t`).
Loggers and the configuration of one broker are answered by that broker; everything else by any.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from heirlog.cli.capped_min_isr import fewest_replicas, warn_of_capped
from heirlog.cli.cleared import warn_of_cleared_elr
from heirlog.cli.connect import DEFAULT_BOOTSTRAP, BootstrapServer, connected
from heirlog.cli.deprecated import warn_of_deprecated
from heirlog.cli.errors import CommandError, UsageError
from heirlog.cli.next_steps import with_next_step
from heirlog.cli.option_groups import grouped
from heirlog.cli.render import Json, show_rows
from heirlog.local import properties
from heirlog.local.similar_names import similar
from heirlog.protocol.errors import error_code

if TYPE_CHECKING:
    from heirlog.blocking import Client
    from heirlog.protocol.messages import IncrementalAlterConfigsRequest

app = typer.Typer(help="Show and change configurations.", no_args_is_help=True)

SET, DELETE = 0, 1
SOURCES = {1: "topic", 2: "broker", 3: "all brokers", 4: "server.properties", 5: "default", 6: "logger", 8: "group"}


class EntityType(StrEnum):
    TOPICS = "topics"
    BROKERS = "brokers"
    BROKER_LOGGERS = "broker-loggers"
    GROUPS = "groups"

    @property
    def resource_type(self) -> int:
        return {
            EntityType.TOPICS: 2,
            EntityType.BROKERS: 4,
            EntityType.BROKER_LOGGERS: 8,
            EntityType.GROUPS: 32,
        }[self]

    def own_source(self, name: str) -> int:
        """The source of values that were set for this very entity."""
        return {
            EntityType.TOPICS: 1,
            EntityType.BROKERS: 2 if name else 3,
            EntityType.BROKER_LOGGERS: 6,
            EntityType.GROUPS: 8,
        }[self]

    @property
    def is_of_a_node(self) -> bool:
        """Asked of that very node."""
        return self in (EntityType.BROKERS, EntityType.BROKER_LOGGERS)


BROKER_DEFAULTS = "broker-defaults"
ELSEWHERE = {
    "users": "its password is in heirlog users list, its quotas are in heirlog quotas describe",
    "clients": "its quotas are in heirlog quotas describe",
    "ips": "its quotas are in heirlog quotas describe",
}
"""Entity types of kafka-configs for which heirlog has other commands."""
MIN_ISR = "min.insync.replicas"
SENSITIVE = "(sensitive)"


class Entity(NamedTuple):
    """Whose configurations: name None and default False for all of a kind."""

    kind: EntityType
    name: str | None
    default: bool


@dataclass(frozen=True, slots=True)
class EntityOptions:
    """What names an entity: words, or options, at length or short."""

    word: Annotated[
        str | None,
        typer.Argument(
            metavar="TYPE", help="topic, broker, broker-logger or group, or broker-defaults.", show_default=False
        ),
    ] = None
    word_name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="The topic, the group or the node id; describe without it: all.", show_default=False
        ),
    ] = None
    kind: Annotated[EntityType | None, typer.Option("--entity-type")] = None
    name: Annotated[str | None, typer.Option("--entity-name", help="A topic, a group, or a node id.")] = None
    default: Annotated[bool, typer.Option("--entity-default", help="The values that apply to all brokers.")] = False
    topic: Annotated[str | None, typer.Option("--topic", help="Short for --entity-type topics --entity-name.")] = None
    broker: Annotated[str | None, typer.Option("--broker", help="Short for --entity-type brokers --entity-name.")] = (
        None
    )
    broker_defaults: Annotated[
        bool, typer.Option("--broker-defaults", help="Short for --entity-type brokers --entity-default.")
    ] = False
    broker_logger: Annotated[
        str | None, typer.Option("--broker-logger", help="Short for --entity-type broker-loggers --entity-name.")
    ] = None

    def apart(self, values: Sequence[str]) -> tuple[EntityOptions, list[tuple[str, str]]]:
        """The entity alone, and CONFIG=VALUE arguments: the first ones are where an entity in words would be.

        Raises UsageError for a value without a name.
        """
        by_option = self.kind is not None or self.topic is not None or self.broker is not None
        by_option = by_option or self.broker_defaults or self.broker_logger is not None
        named, given = self, list(values)
        if self.word_name is not None and (by_option or self.word == BROKER_DEFAULTS):
            named, given = replace(named, word_name=None), [self.word_name, *given]
        if self.word is not None and by_option:
            named, given = replace(named, word=None), [self.word, *given]
        settings = [text.partition("=") for text in given]
        strange = next(("".join(parts) for parts in settings if not parts[0] or not parts[1]), None)
        if strange is not None:
            raise UsageError(f"{strange} is not of the form CONFIG=VALUE")
        return named, [(name.strip(), _without_brackets(value.strip())) for name, _, value in settings]

    @property
    def entity(self) -> Entity:
        """The one entity that the options name. Raises UsageError."""
        short = [
            Entity(kind, name, False)
            for kind, name in (
                (EntityType.TOPICS, self.topic),
                (EntityType.BROKERS, self.broker),
                (EntityType.BROKER_LOGGERS, self.broker_logger),
            )
            if name is not None
        ]
        if self.word is not None:
            short.append(_in_words(self.word, self.word_name))
        if self.broker_defaults:
            short.append(Entity(EntityType.BROKERS, None, True))
        at_length = self.kind is not None or self.name is not None or self.default
        if len(short) + at_length != 1:
            raise UsageError(
                "name one entity, as in `heirlog configs describe topic NAME`, or by --entity-type with --entity-name "
                "or --entity-default, or by one of --topic, --broker, --broker-defaults, --broker-logger"
            )
        if short:
            return short[0]
        if self.kind is None:
            raise UsageError(
                "--entity-name and --entity-default need an --entity-type: topics, brokers, broker-loggers, groups"
            )
        return Entity(self.kind, self.name, self.default)


def _in_words(word: str, name: str | None) -> Entity:
    """`topic orders`, `brokers`, `broker-defaults`. Raises UsageError."""
    if word == BROKER_DEFAULTS:
        if name is not None:
            raise UsageError(
                f"{BROKER_DEFAULTS} goes without a name; heirlog configs describe broker ID is for one broker"
            )
        return Entity(EntityType.BROKERS, None, True)
    plural = word if word.endswith("s") else f"{word}s"
    if plural in ELSEWHERE:
        raise UsageError(f"{word} has no configurations: {ELSEWHERE[plural]}")
    if plural not in list(EntityType):
        raise UsageError(
            f"{word} has no configurations: give topic, broker, broker-logger or group, and then a name, or "
            f"{BROKER_DEFAULTS}"
        )
    return Entity(EntityType(plural), name, False)


@app.command("describe")
@grouped
def describe(
    named: EntityOptions,
    everything: Annotated[
        bool, typer.Option("--all", help="Also show values that are not set on this entity itself, such as defaults.")
    ] = False,
    as_properties: Annotated[
        bool,
        typer.Option(
            "--properties",
            help="Lines NAME=VALUE, as `configs alter --add-config-file` and `topics create --config-file` read them.",
        ),
    ] = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Show what is configured, and where each value comes from."""
    entity = named.entity
    if as_properties and (as_json or (entity.name is None and not entity.default)):
        raise UsageError("--properties is for one entity, which is named, and goes without --json")
    with connected(bootstrap_server) as client:
        rows = [row for name in _names(client, *entity) for row in _described(client, entity.kind, name, everything)]
    if as_properties:
        for row in rows:
            is_known = row["value"] not in (None, SENSITIVE)
            print(properties.rendered(row["name"], row["value"]) if is_known else f"# {row['name']}: {row['value']}")
        return
    columns = {"entity": "Entity", "name": "Name", "source": "Source", "value": "Value"}
    show_rows(columns, rows, as_json)
    if not rows and not as_json and not everything:
        print("nothing is set; --all also shows the values that apply", file=sys.stderr)


def _names(client: Client, kind: EntityType, name: str | None, default: bool) -> list[str]:
    """What to ask for: the one that was named, or all there are. Raises UsageError."""
    if name is not None or default:
        return [_one(kind, name, default)]
    if kind is EntityType.TOPICS:
        return sorted(topic.name or "" for topic in client.metadata(None).topics)
    if kind is EntityType.GROUPS:
        return _groups(client)
    return [str(broker) for broker in sorted(client.brokers())]


def _groups(client: Client) -> list[str]:
    """Those that have configurations of their own."""
    from heirlog.protocol.messages import ListConfigResourcesRequest

    answer = client.send_to_any(ListConfigResourcesRequest(resource_types=[EntityType.GROUPS.resource_type]))
    return [found.resource_name for found in answer.config_resources]


def _one(kind: EntityType, name: str | None, default: bool) -> str:
    """The name on the wire. Raises UsageError."""
    if name is not None and default:
        raise UsageError("--entity-name and --entity-default exclude each other")
    if default and kind is not EntityType.BROKERS:
        raise UsageError("--entity-default is for brokers")
    if name is None and not default:
        raise UsageError(f"name it, as in `heirlog configs alter {str(kind).removesuffix('s')} NAME`")
    if name is not None and kind.is_of_a_node and not name.isdecimal():
        raise UsageError(f"{name} is not a node id: brokers and their loggers are named by one")
    return name or ""


def _ask(client: Client, kind: EntityType, name: str, request: Any) -> Any:
    if not kind.is_of_a_node or not name:
        return client.send_to_any(request)
    return client.send_to_broker(int(name), request)


def _described(client: Client, kind: EntityType, name: str, everything: bool) -> Iterator[dict[str, Any]]:
    """Raises CommandError."""
    from heirlog.protocol.messages import DescribeConfigsRequest

    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=kind.resource_type, resource_name=name, configuration_keys=None
    )
    result = _ask(client, kind, name, DescribeConfigsRequest(resources=[resource])).results[0]
    _check("describe", kind, name, result)
    for entry in result.configs:
        if everything or entry.config_source == kind.own_source(name):
            yield {
                "entity": name or "<default>",
                "name": entry.name,
                "value": SENSITIVE if entry.is_sensitive else entry.value,
                "source": SOURCES.get(entry.config_source, str(entry.config_source)),
            }


def _check(verb: str, kind: EntityType, name: str, result: Any) -> None:
    if result.error_code:
        code = error_code(result.error_code)
        reason = f"{code.name}, {result.error_message or ''}".rstrip(", .")
        raise CommandError(with_next_step(f"cannot {verb} {kind} {name or '<default>'}: {reason}", code))


@app.command("alter")
@grouped
def alter(
    named: EntityOptions,
    values: Annotated[
        list[str] | None,
        typer.Argument(metavar="CONFIG=VALUE", help="The same as --add-config, one value each.", show_default=False),
    ] = None,
    add_config: Annotated[
        str | None, typer.Option(metavar="NAME=VALUE,...", help="Write [a,b] for a value that contains commas.")
    ] = None,
    add_config_file: Annotated[
        Path | None, typer.Option(help="A file of lines NAME=VALUE; --add-config overrides it.")
    ] = None,
    delete_config: Annotated[str | None, typer.Option(metavar="NAME,...")] = None,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
) -> None:
    """Set or delete single values. Other values do not change."""
    from heirlog.protocol.messages import IncrementalAlterConfigsRequest

    named, set_in_words = named.apart(values or ())
    entity = named.entity
    kind, name = entity.kind, _one(*entity)
    added = {
        **dict(set_in_words),
        **({} if add_config_file is None else properties.read(str(add_config_file))),
        **dict(pairs(add_config or "")),
    }
    deleted = [part.strip() for part in (delete_config or "").split(",") if part.strip()]
    if not added and not deleted:
        raise UsageError(
            "nothing to change: give CONFIG=VALUE after the name, or --add-config, --add-config-file or --delete-config"
        )
    twice = sorted(set(added) & set(deleted))
    if twice:
        raise UsageError(f"{twice[0]} is both added and deleted")
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=kind.resource_type,
        resource_name=name,
        configs=[*_changes(added.items(), SET), *_changes(((key, None) for key in deleted), DELETE)],
    )
    with connected(bootstrap_server) as client:
        if deleted and kind is not EntityType.BROKER_LOGGERS:
            _warn_of_unset(client, kind, name, deleted)
        if MIN_ISR in (*added, *deleted):
            _warn_of_min_isr(client, kind, name, added.get(MIN_ISR))
        request = IncrementalAlterConfigsRequest(resources=[resource])
        _check("alter", kind, name, _ask(client, kind, name, request).responses[0])
        if kind is EntityType.TOPICS and MIN_ISR in added:
            warn_of_capped(name, added[MIN_ISR], fewest_replicas(client, name))
    warn_of_deprecated(added)
    print(f"Completed updating config for {kind} {name or '<default>'}.")


def _without_brackets(value: str) -> str:
    """`[a,b]` is how --add-config has a value with commas."""
    return value[1:-1] if value.startswith("[") and value.endswith("]") else value


def _warn_of_unset(client: Client, kind: EntityType, name: str, deleted: Sequence[str]) -> None:
    """Of what is deleted and was not set: a misspelt name leaves the value as it is."""
    there = {row["name"] for row in _described(client, kind, name, everything=False)}
    for each in deleted:
        if each not in there:
            near = similar(each, there)
            meant = f"; did you mean {near}?" if near else ""
            print(f"{each} was not set for {kind} {name or '<default>'}{meant}", file=sys.stderr)


def _warn_of_min_isr(client: Client, kind: EntityType, name: str, value: str | None) -> None:
    """A change of min ISR clears every ELR that it counts for: that of a topic, or all. value: None deletes.

    A topic that has the value already changes nothing. One broker's own value is refused while there are ELRs.
    """
    if kind is EntityType.TOPICS:
        now = {row["name"]: row["value"] for row in _described(client, kind, name, everything=False)}
        if now.get(MIN_ISR) != value:
            warn_of_cleared_elr(client, f"changing {MIN_ISR} of topic {name}", [name])
    elif not name:
        warn_of_cleared_elr(client, f"setting {MIN_ISR} for all brokers")


def _changes(
    values: Iterable[tuple[str, str | None]], operation: int
) -> Iterator[IncrementalAlterConfigsRequest.AlterableConfig]:
    from heirlog.protocol.messages import IncrementalAlterConfigsRequest

    for name, value in values:
        yield IncrementalAlterConfigsRequest.AlterableConfig(name=name, config_operation=operation, value=value)


def pairs(text: str) -> Iterator[tuple[str, str]]:
    """`a=1,b=[x,y]` as kafka-configs reads it. Raises UsageError."""
    rest = text.strip()
    while rest:
        name, equals, rest = rest.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"--add-config: {name!r} is not of the form NAME=VALUE")
        if rest.startswith("["):
            value, closed, rest = rest[1:].partition("]")
            if not closed or (rest and not rest.startswith(",")):
                raise UsageError(f"--add-config: the value of {name.strip()} has no closing bracket")
            rest = rest[1:]
        else:
            value, _, rest = rest.partition(",")
        yield name.strip(), value.strip()
