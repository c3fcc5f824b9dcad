"""One name, one class: a reader who sees a class name need not look up which of several is meant.

Generated messages are left out: Kafka's schemas name their structures. Words that no Kafka engineer knows are not in
names either.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src" / "heirlog"

BANNED = frozenset(
    {"bystander", "bystanders", "hush", "lane", "news", "outbox", "patience", "seat", "seats", "stranger", "strangers"}
    | {"succession", "tell", "told", "unseated", "untold"}
)
"""Private words that were names once."""
MAY_BE_NAMED = re.compile(rf"(?:(?<![A-Za-z])|(?=[A-Z]))(?i:{'|'.join(sorted(BANNED))})(?![a-z])")
"""To look for this takes a tenth of the time of parsing."""

KAFKAS = "Kafka's name in both, for the broker and for the client"
LOCAL_PORT = "files in `apis/` name the port that their handler uses; no other module imports it"
OWN_RESULT = "each drill has its own result type; no module uses two of them"
ABOVE_THE_HOUSE = "the programs of floors 9 and 10 and the simulator do not import each other's"

KNOWN: Mapping[str, tuple[set[str], str]] = {
    "Batch": (
        {
            "cli/salvage",
            "spark/pipeline/report",
            "testing/conformance/body",
        },
        "each is a batch of its own task (a report's, a copy's, a scenario's), and stays in its folder",
    ),
    "Broker": (
        {"apis/describe_recovery", "apis/incremental_alter_configs", "apis/metadata", "broker/broker"},
        LOCAL_PORT,
    ),
    "Client": (
        {"blocking/client", "sim/clients/client"},
        "the two drivers of the client core: with sockets and in the simulator, which do not import each other",
    ),
    "Cluster": (
        {"client/cluster", "local/cluster"},
        "a cluster as a client knows it, and one of processes on this machine: `heirlog.testing` exports the second",
    ),
    "GroupMember": ({"client/groups", "drill/soak_clients"}, ABOVE_THE_HOUSE),
    "Commits": ({"apis/offset_commit", "drill/soak_clients"}, LOCAL_PORT),
    "Connection": ({"apis/broker_heartbeat", "blocking/connection"}, LOCAL_PORT),
    "Controller": ({"apis/describe_cluster", "apis/incremental_alter_configs", "controller/controller"}, LOCAL_PORT),
    "Files": ({"env", "spark/pipeline/spec"}, ABOVE_THE_HOUSE),
    "Finding": ({"cli/offline/findings", "sim/history"}, ABOVE_THE_HOUSE),
    "Loss": ({"metadata/loss_report", "spark/loss"}, ABOVE_THE_HOUSE),
    "Node": (
        {
            "apis/add_offsets_to_txn",
            "apis/add_partitions_to_txn",
            "apis/api_versions",
            "apis/create_acls",
            "apis/delete_acls",
            "apis/describe_acls",
            "apis/describe_cluster",
            "apis/describe_configs",
            "apis/envelope",
            "apis/find_coordinator",
            "apis/get_replica_log_info",
            "apis/list_config_resources",
            "apis/list_transactions",
            "apis/metadata",
            "apis/update_features",
            "node/node",
        },
        LOCAL_PORT,
    ),
    "ProducerIdAndEpoch": ({"broker/transactions/state", "client/record_accumulator"}, KAFKAS),
    "Quorum": ({"raft/quorum", "testing/conformance/body"}, ABOVE_THE_HOUSE),
    "Reader": ({"cli/record_reader", "drill/workload"}, ABOVE_THE_HOUSE),
    "RecoveryScenario": ({"cli/drill", "testing/conformance/recovery_layer"}, ABOVE_THE_HOUSE),
    "Report": ({"cli/offline/findings", "spark/pipeline/report"}, ABOVE_THE_HOUSE),
    "Verdict": (
        {
            "drill/chaos",
            "drill/controllers",
            "drill/last_replica_standing",
            "drill/pipeline",
            "drill/rack",
            "drill/soak",
            "drill/stdlib",
            "drill/unclean_recovery",
        },
        OWN_RESULT,
    ),
    "Writer": ({"cli/produce", "drill/workload"}, ABOVE_THE_HOUSE),
}
"""Name -> modules, reason. Only a name that is Kafka's in each of the places, or that stays within its module."""


def public_classes(root: Path) -> dict[str, set[str]]:
    """Public class name -> the modules that define it at their top level."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in root.rglob("*.py"):
        if "_generated" in path.parts:
            continue
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].add(path.relative_to(root).with_suffix("").as_posix())
    return found


def duplicates(root: Path) -> dict[str, set[str]]:
    return {name: modules for name, modules in public_classes(root).items() if len(modules) > 1}


def test_only_the_listed_public_classes_share_a_name() -> None:
    known = {name: modules for name, (modules, _) in KNOWN.items()}
    assert duplicates(SOURCE) == known


def test_the_check_notices_a_second_class_of_a_name(tmp_path: Path) -> None:
    for module in ("one", "two"):
        (tmp_path / f"{module}.py").write_text("class Listener: ...\nclass _Own: ...\n")
    assert duplicates(tmp_path) == {"Listener": {"one", "two"}}


def names_in(tree: ast.AST) -> Iterator[str]:
    """Every name that a module gives: to classes, functions, arguments, variables and attributes."""
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name


def banned_words(root: Path) -> set[tuple[str, str]]:
    """(module, name) of each name with a banned word, also within snake case and camel case."""
    found = set()
    for path in root.rglob("*.py"):
        module, source = path.relative_to(root).with_suffix("").as_posix(), path.read_text()
        for name in (path.stem, *(names_in(ast.parse(source)) if MAY_BE_NAMED.search(source) else ())):
            if not BANNED.isdisjoint(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().split("_")):
                found.add((module, name))
    return found


def test_no_name_has_a_banned_word() -> None:
    assert banned_words(SOURCE) == set()


def test_the_check_notices_a_banned_word_in_any_place(tmp_path: Path) -> None:
    (tmp_path / "outbox.py").write_text("class NewsOf: ...\ndef _tell(): self.seats = untold_count = 1\n")
    found = {name for _, name in banned_words(tmp_path)}
    assert found == {"outbox", "NewsOf", "_tell", "seats", "untold_count"}
