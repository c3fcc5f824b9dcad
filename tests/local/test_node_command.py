"""`heirlog node` starts without typer and rich, and takes the long way for everything it does not understand."""

from __future__ import annotations

import subprocess
import sys

import pytest

from heirlog.local.node_command import NodeOptions, parse_plain


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--config", "a"], NodeOptions("a")),
        (["--config=a"], NodeOptions("a")),
        (["-c", "a", "--reuse-port"], NodeOptions("a", reuse_port=True)),
        (["--ledger", "l", "--config", "a", "--stop-with-stdin"], NodeOptions("a", "l", stop_with_stdin=True)),
        ([], None),
        (["--help"], None),
        (["--config"], None),
        (["--config", "a", "--colour"], None),
        (["--reuse-port=yes", "--config", "a"], None),
    ],
)
def test_the_short_way_understands_what_a_node_is_started_with(
    arguments: list[str], expected: NodeOptions | None
) -> None:
    assert parse_plain(arguments) == expected


def test_the_short_way_imports_neither_typer_nor_rich() -> None:
    program = (
        "import sys; sys.argv = ['heirlog', 'node', '--config', '/nowhere/server.properties']\n"
        "from heirlog.cli.main import main\n"
        "try: main()\n"
        "except SystemExit as end: code = end.code\n"
        "print(code, *sorted({'typer', 'rich', 'pydantic', 'confluent_kafka', 'pytest'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split() == ["1"]
    assert done.stderr == "heirlog: there is no configuration file /nowhere/server.properties\n"
