"""What people type who know Kafka's tools, kcat or rpk, and what it is called here.

    heirlog topics --list              an action of kafka-topics: here it is a command
    heirlog users create               another word for a command
    heirlog consume --property ...     an option that has another name here, or none
    heirlog help topics                a command of rpk, kubectl and git

Only the last one works as it is typed; the others are errors whose sentence names what to type.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

SYNONYMS: Final = (
    frozenset({"list", "ls", "show", "get"}),
    frozenset({"describe", "show", "get", "info", "status", "desc"}),
    frozenset({"create", "add", "new", "set"}),
    frozenset({"alter", "set", "update", "change", "edit", "modify"}),
    frozenset({"delete", "remove", "rm", "del", "drop"}),
    frozenset({"use", "switch", "select", "set"}),
    frozenset({"info", "describe", "status", "id"}),
    frozenset({"groups", "consumer-groups", "share-groups"}),
    frozenset({"quorum", "metadata-quorum"}),
    frozenset({"produce", "console-producer"}),
    frozenset({"consume", "console-consumer", "console-share-consumer"}),
    frozenset({"offsets", "get-offsets"}),
    frozenset({"elect", "leader-election"}),
    frozenset({"reassign", "reassign-partitions"}),
    frozenset({"dump", "dump-log"}),
)
"""Words for the same action. A word may be in several."""

_SERVERS: Final = "--bootstrap-server (-b) names the brokers"
_LOGIN: Final = "--command-config FILE has the client properties"
OPTIONS: Final = {
    "--broker-list": _SERVERS,
    "--brokers": _SERVERS,
    "--zookeeper": _SERVERS,
    "--consumer.config": _LOGIN,
    "--producer.config": _LOGIN,
    "--consumer-config": _LOGIN,
    "--producer-config": _LOGIN,
    "--timeout-ms": "--until-end (-e) stops at the end of the topic",
    "--property": "consume has --print-key, --format and --json, produce --key-separator and --input-format json",
    "--formatter-property": "consume has --print-key, --format and --json",
    "--reader-property": "produce has --key-separator and --input-format json",
    "--command-property": _LOGIN,
    "--producer-property": "produce has --acks, --compression and --transactional-id",
    "--producer-props": "perf produce has --acks and --compression; " + _LOGIN,
    "--producer.props": "perf produce has --acks and --compression; " + _LOGIN,
    "--print-metrics": "leave it out: what was measured is always shown, and --json has all of it",
    "--messages": "--num-records says how many",
    "--payload-file": "the values are random; `heirlog produce TOPIC FILE --lines` sends the lines of a file",
    "-X": _LOGIN,
    "--password": "leave it out: the password is asked for, or read from the standard input",
    "--entity-type": "--user, --client and --ip name whose quotas, also with -defaults",
    "--files": "name the files without an option",
    "--print-data-log": "--deep prints the records",
    "--hmac": "name the token by its id; heirlog tokens list shows the ids",
    "--topic-partitions": "name partitions after the topic: TOPIC:0,1",
    "--partitions": "name partitions after the topic: TOPIC:0,1",
    "--formatter": "--format has kcat's format strings, and --json prints objects",
    "--whitelist": "--include takes a regular expression",
    "--regex": "--include takes a regular expression",
    "--records": "--num-records says how many",
    "--num": "--max (-n) says how many records",
    "--profile": "--context NAME is a cluster of `heirlog context list`",
    "-C": "consume needs no such option",
    "-P": "produce needs no such option",
    "--force": "leave it out: this command does not ask",
    "-q": "leave it out: the standard output has what was asked for, and nothing else",
    "-u": "leave it out: each record is written when it comes",
    "-L": "`heirlog topics describe` and `heirlog broker list` show the metadata",
    "-Q": "`heirlog offsets` shows offsets",
}
"""Of Kafka's tools, kcat and rpk, where the nearest option here has another name."""

_STOP: Final = "Ctrl-C in the terminal of `heirlog up` stops its nodes"
_STATE: Final = "`heirlog cluster info` shows the state of the cluster"
COMMANDS: Final = {
    "status": _STATE,
    "health": _STATE,
    "ps": _STATE,
    "info": _STATE,
    "describe": _STATE,
    "nodes": "`heirlog broker list` shows the brokers, and `heirlog quorum describe` the controllers",
    "stop": _STOP,
    "down": _STOP,
    "start": "`heirlog up` starts a cluster on this machine, and `heirlog node --config FILE` one node",
}
"""Words for which no command here is a synonym."""

AFTER_THE_COMMAND: Final = {
    "-b": "heirlog topics list -b localhost:9092",
    "--bootstrap-server": "heirlog topics list -b localhost:9092",
    "--context": "heirlog topics list --context NAME",
    "--command-config": "heirlog topics list --command-config FILE",
}
"""Options of each command that connects to a cluster, which other tools take before it too."""

VALUES: Final = {
    "--acks": "with 0 no record could be said to be acknowledged",
    "--entity-type": "for users, clients and ips there are `heirlog users list` and `heirlog quotas describe`",
}
"""Options of Kafka's tools that have fewer values here, and what to do about the others."""


def rewritten(arguments: list[str]) -> list[str]:
    """The command line in heirlog's own words: `help topics` is `topics --help`, `version` is `--version`."""
    if arguments[:1] == ["help"]:
        return [*arguments[1:], "--help"]
    return ["--version"] if arguments == ["version"] else arguments


def synonyms_of(word: str, commands: Iterable[str]) -> list[str]:
    """The commands that another word may mean."""
    return [name for name in commands if any(word in group and name in group for group in SYNONYMS)]


def of_value(message: str) -> str:
    """What to type instead of a value that is refused; empty if nothing is known."""
    return next((hint for option, hint in VALUES.items() if message.startswith(f"Invalid value for '{option}'")), "")


def of_option(option: str, command: Any, path: str) -> str:
    """What to type instead of an option that the command does not have; empty if nothing is known.

    command: the command, or the group of commands, whose name on the command line is `path`.
    """
    action = option.lstrip("-")
    commands = getattr(command, "commands", {})
    if commands and option in AFTER_THE_COMMAND:
        return f"it goes after the command, such as {AFTER_THE_COMMAND[option]}"
    if action in commands:
        return f"`{path} {action}` is a command here"
    if action == path.rpartition(" ")[2]:
        return "leave it out: the command is its name"
    if option in ("--config", "--delete-config") and path.split()[1:] == ["topics", "alter"]:
        return "`heirlog configs alter topic TOPIC NAME=VALUE` changes configurations"
    if option == "--replication-factor" and path.split()[1:] == ["topics", "alter"]:
        return "`heirlog reassign --execute` gives a partition other replicas, or more: its file lists them"
    if option == "--brokers" and any("--nodes" in parameter.opts for parameter in command.params):
        return "--nodes says how many brokers"
    return OPTIONS.get(option, "")
