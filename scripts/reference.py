"""Write the pages of docs/reference that are derived from the code: `.venv/bin/python scripts/reference.py`.

The command line, the configurations, the metrics and the Python API are described in the code that implements them.
The pages are in the repository, so that they can be read without building the site; `tests/test_docs.py` fails where
a page is out of date.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import GenericAlias
from typing import Any, ForwardRef

import typer

from heirlog.cli.app import tree
from heirlog.metadata.config_docs import WITHOUT_EFFECT, documentation
from heirlog.metadata.definition import ConfigKey, Update
from heirlog.metadata.server_configs import SERVER_CONFIGS
from heirlog.metadata.topic_configs import TOPIC_CONFIGS
from heirlog.node.node import Node
from heirlog.server.metrics.families import NodeFamilies
from heirlog.server.metrics.family import Family
from heirlog.sim.cluster import SimCluster
from heirlog.sim.world import World

REFERENCE = Path(__file__).resolve().parents[1] / "docs" / "reference"
WRITTEN = "<!-- Written by scripts/reference.py from the code: change the code, then run the script. -->"


COMMAND_LINE = f"""# Command line

{WRITTEN}

Commands that talk to a cluster take `-b` (`--bootstrap-server`, or the environment variable `HEIRLOG_BOOTSTRAP`):
`host:port` of a broker, or of several, separated by commas. Without it they use the default context, or
`localhost:9092` if there is none. `--context NAME` names a context for one command, and the environment variable
`HEIRLOG_CONTEXT` for one terminal. `--command-config FILE` has client properties, as for Kafka's tools. Where several
are given, the first of these counts: `-b`, `--context`, `HEIRLOG_BOOTSTRAP`, `HEIRLOG_CONTEXT`, the default context.
With `-b`, a context that is named still says how to log in, and the default context does not.
Every command has `--help`, and takes `--yes`, also if it does not ask for confirmation. `heirlog --version` prints the
version.

A context is a file of Kafka's client properties below `~/.config/heirlog/contexts` (`XDG_CONFIG_HOME`). `heirlog up`
writes one with the addresses of all its brokers: `local` if its first port is 9092, `local-9192` if it is 9192.
`heirlog context create` writes one for another cluster, with a user and a password if the cluster needs them.
`heirlog context list` marks the default, and `heirlog context use` changes it. Without a choice, `local` is the
default.

`heirlog --install-completion` lets your shell (bash, zsh, fish) complete commands, options and names with Tab after its
next start. `heirlog --show-completion` prints the script instead. For bash it is in
`~/.bash_completions/heirlog.sh`, and a line at the end of `~/.bashrc` reads it: remove both to undo this.

What `--json` prints is in [JSON](json.md).

Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted by Ctrl-C. A command whose reader has gone, as in
`heirlog consume words -e | head -1`, ends with 1 and without a sentence.
[Simulation](../internals/simulation.md) explains scenarios such as U11.
"""
CONFIGURATION = f"""# Configuration

{WRITTEN}

Names, types, defaults and limits are Kafka's; names that begin with `heirlog.` are heirlog's own. An unknown name is
refused, and so is a value that this version does not support.

## Nodes

Set them in `server.properties`. *Changes* says for which brokers `heirlog configs alter` (`--broker 1`,
`--broker-defaults`) can change the value at run time.
"""
TOPICS = """## Topics

Set them with `heirlog topics create --config NAME=VALUE` or `heirlog configs alter topic NAME`.
"""
OTHERS = """## Without effect

heirlog has no part that these configurations of Apache Kafka's nodes could configure. It accepts them, so that a
`server.properties` made for Kafka works. If an entry begins with a reason, only numbers and the default are accepted.
Configurations of groups are stored, but have no effect either.
"""
PYTHON_API = f"""# Python API

{WRITTEN}

These names are public, and so are the fixtures `heirlog_cluster`, `heirlog_shared_cluster` and
`heirlog_shared_arguments` of the pytest plug-in. Other names may change with any version. [A cluster in your
tests](../tutorials/tests.md), [the test cluster](test-cluster.md), [the Python client](python-client.md) and
[Spark](spark.md) explain how to use them.
"""
PUBLIC_MODULES = ("heirlog.testing", "heirlog.blocking", "heirlog.spark")
"""Each says in its `__all__` what is public."""
METRICS = f"""# Metrics

{WRITTEN}

A node serves these metrics to Prometheus if `heirlog.metrics.listener` is set. [Monitor](../guides/monitor.md) names
those to watch. On Linux there are also the usual `process_*` metrics.
"""


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def command_line() -> str:
    return "\n".join([COMMAND_LINE, *_commands(typer.main.get_command(tree()), "heirlog")])


def _commands(command: Any, line: str) -> Iterator[str]:
    if not hasattr(command, "commands"):
        yield f"## `{line}`\n\n{_plain(command.help)}\n"
        arguments = [p for p in command.params if p.param_type_name == "argument"]
        options = [
            p for p in command.params if p.param_type_name == "option" and not p.hidden and p.name not in GENERAL
        ]
        if arguments:
            yield table(("argument", ""), [(f"`{p.metavar or p.name}`", p.help or "") for p in arguments])
        if options:
            yield table(("option", "", "default"), [_option(option) for option in options])
        return
    for name in sorted(command.commands):
        below = command.commands[name]
        if not below.hidden:
            yield from _commands(below, f"{line} {name}")


GENERAL = ("help", "bootstrap_server", "bootstrap_servers", "bootstrap", "chosen_context", "client_properties")
"""Options that the head of the page explains once."""


def _option(option: Any) -> tuple[str, str, str]:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    default = option.default
    known = default is not None and default is not False and not callable(default) and default != () and default != []
    shown = "required" if option.required else f"`{getattr(default, 'value', default)}`" if known else ""
    return names, _plain(option.help or ""), shown


def _plain(help_text: str | None) -> str:
    return re.sub(r"(?<!\n)[ \t]*\n(?!\n)[ \t]*", " ", (help_text or "").strip().replace("\b", ""))


def configurations() -> str:
    return "\n".join(
        [CONFIGURATION, _definitions(SERVER_CONFIGS), TOPICS, _definitions(TOPIC_CONFIGS), OTHERS, _without_effect()]
    )


CHANGES: Mapping[Update, str] = {
    Update.READ_ONLY: "restart",
    Update.CLUSTER_WIDE: "all or one broker",
    Update.PER_BROKER: "one broker",
}


def _definitions(known: Mapping[str, ConfigKey]) -> str:
    of_nodes = known is SERVER_CONFIGS
    head = ("name", "type", "default", "changes", "") if of_nodes else ("name", "type", "default", "")
    rows = []
    for name, definition in sorted(known.items()):
        if definition.is_internal or documentation(definition).startswith(WITHOUT_EFFECT):
            continue
        default = "" if definition.default in (None, "") else f"`{definition.default}`"
        changes = (CHANGES[definition.update],) if of_nodes else ()
        rows.append((f"`{name}`", definition.type.name.lower(), default, *changes, documentation(definition)))
    return table(head, rows)


def _without_effect() -> str:
    by_reason: dict[str, list[str]] = {}
    for name, definition in sorted(SERVER_CONFIGS.items()):
        text = documentation(definition)
        if text.startswith(WITHOUT_EFFECT):
            by_reason.setdefault(text.removeprefix(WITHOUT_EFFECT).strip(), []).append(f"`{name}`")
    return "\n".join(
        f"- {reason + ' ' if reason else ''}{', '.join(names)}" for reason, names in sorted(by_reason.items())
    )


def metrics() -> str:
    config = {"heirlog.metrics.listener": "127.0.0.1:0"}
    cluster = SimCluster(World(1), brokers=1, config=config)
    cluster.format()
    cluster.start_all()
    cluster.run_until(lambda: cluster.controller.running is not None and cluster.broker(1).running is not None, 30_000)
    cluster.run_for(5000)
    of_broker, of_controller = (_families(machine.running) for machine in (cluster.broker(1), cluster.controller))
    rows = []
    for name, family in sorted({**of_controller, **of_broker}.items()):
        where = (
            "both" if name in of_broker and name in of_controller else "broker" if name in of_broker else "controller"
        )
        rows.append((f"`{name}`", family.kind.value, where, family.text))
    return METRICS + "\n" + table(("name", "type", "node", ""), rows)


def _families(node: Node | None) -> dict[str, Family]:
    assert node is not None
    families = NodeFamilies(node, lambda: {"PLAINTEXT": 1}).all()
    return {found.name: found for found in families if found is not None and not found.name.startswith("process_")}


def python_api() -> str:
    return "\n".join([PYTHON_API, *(section for name in PUBLIC_MODULES for section in _module(name))])


def _module(name: str) -> Iterator[str]:
    module = importlib.import_module(name)
    yield f"## `{name}`\n\n{(inspect.getdoc(module) or '').partition(chr(10) * 2)[0]}\n"
    for public in sorted(module.__all__):
        value = getattr(module, public)
        if inspect.isclass(value):
            yield from _class(public, value)
        elif inspect.isfunction(value):
            yield f"### `{public}`\n\n{_described(public, value)}"
        else:
            yield f"### `{public}`\n\n{_constant(value)}\n"


def _constant(value: object) -> str:
    if isinstance(value, int | str):
        return f"The constant `{value!r}`."
    return f"The type `{value}`." if isinstance(value, GenericAlias) else f"A `{type(value).__name__}`."


def _class(name: str, cls: type) -> Iterator[str]:
    has_own_constructor = "__init__" in vars(cls) and not issubclass(cls, BaseException)
    yield f"### `{name}`\n\n{_described(name, cls) if has_own_constructor else _documented(cls)}"
    types = {} if has_own_constructor else vars(cls).get("__annotations__", {})
    if types:
        yield "\n".join(f"- `{field}: {_type(text)}`" for field, text in types.items()) + "\n"
    for attribute, value in vars(cls).items():
        if attribute.startswith("_") or attribute in types:
            continue
        if isinstance(value, property):
            yield f"#### `{name}.{attribute}`\n\n{_documented(value)}"
        elif isinstance(value, classmethod | staticmethod) or inspect.isfunction(value):
            yield f"#### `{name}.{attribute}`\n\n{_described(attribute, getattr(cls, attribute))}"


def _described(name: str, value: Callable[..., object]) -> str:
    signature = inspect.signature(value)
    kept = [parameter for parameter in signature.parameters.values() if parameter.name != "self"]
    shown = [_parameter(parameter) for parameter in kept]
    first_named = next((i for i, parameter in enumerate(kept) if parameter.kind is parameter.KEYWORD_ONLY), None)
    if first_named is not None:
        shown.insert(first_named, "*")
    returned = "" if inspect.isclass(value) else f" -> {_type(signature.return_annotation)}"
    line = f"{name}({', '.join(shown)}){returned}"
    if len(line) > 100:
        line = f"{name}(\n" + "".join(f"    {parameter},\n" for parameter in shown) + f"){returned}"
    return f"```python\n{line}\n```\n\n{_documented(value)}"


def _parameter(parameter: inspect.Parameter) -> str:
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    text = f"{stars}{parameter.name}: {_type(parameter.annotation)}"
    if parameter.default is parameter.empty:
        return text
    default = repr(parameter.default)
    return f"{text} = {default if len(default) < 40 else '...'}"


def _type(annotation: object) -> str:
    """As the source has it: the modules leave annotations unevaluated, and a NamedTuple wraps them."""
    if isinstance(annotation, ForwardRef):
        return annotation.__forward_arg__
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))


ARGUMENT = re.compile(r"^(?!Source: )(\w+(?:, \w+)*): ", re.MULTILINE)
"""How a docstring begins what it says of an argument."""


def _documented(value: object) -> str:
    text = inspect.getdoc(value) or ""
    if text.startswith(f"{getattr(value, '__name__', None)}("):  # Python's own, of named tuples and dataclasses
        return ""
    paragraphs = (ARGUMENT.sub(r"- `\1`: ", paragraph) for paragraph in text.split("\n\n"))
    return "\n\n".join(paragraphs) + "\n" if text else ""


PAGES = {"python-api.md": python_api, "cli.md": command_line, "configuration.md": configurations, "metrics.md": metrics}


def main() -> None:
    for name, text in PAGES.items():
        (REFERENCE / name).write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main()
