"""One file per API: everything else is derived from the descriptors, and there is no other list of APIs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import api_index
from codegen.generator import SPECS as ALL_SPECS
from codegen.spec import parse
from heirlog.apis.common.api import Api, Entry, Forwarded, Role, Served, entry
from heirlog.metadata.config_docs import WITHOUT_EFFECT, documentation
from heirlog.metadata.server_configs import SERVER_CONFIGS
from heirlog.node.router import ROUTES, ApiRoute, routes_with_unstable
from heirlog.protocol.api import APIS, ApiKey, response_class
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import DescribeQuorumRequest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "heirlog"
GENERATED = (SOURCE / "protocol" / "_generated", SOURCE / "apis" / "_index.py")
"""`python tools/codegen` and `python tools/api_index.py` write them; tests compare them with what these write."""
LIST_MIN = 3
"""So many APIs in one collection are a list of APIs."""
TESTS_MIN = 2
"""Of an API: of what it does, and of what is refused."""
OF_ALL_APIS = {"authorization", "descriptors"}
MESSAGES = {f"{api.name}{kind}" for api in APIS.values() for kind in ("Request", "Response")}
SPECS = ALL_SPECS / "messages"
DESCRIPTORS = list(api_index.descriptors())


def test_the_index_and_the_tables_of_the_documentation_are_as_the_descriptors_say() -> None:
    stale = [path for path, text in api_index.generate().items() if (ROOT / path).read_text("utf-8") != text]
    assert stale == [], "run `python tools/api_index.py`"


def test_every_file_is_one_api_and_its_header_describes_it() -> None:
    files = {path.stem for path in (SOURCE / "apis").glob("*.py")} - {"__init__", "_index"}
    assert files == {module for module, _ in DESCRIPTORS}
    for module, api in DESCRIPTORS:
        text = (SOURCE / "apis" / f"{module}.py").read_text("utf-8")
        assert text.startswith(f'"""{APIS[api.key].name} (key {int(api.key)}): '), module
        header = text.split('"""')[1]
        assert re.search(r"\bv\d+", header), f"{module} does not say what each version added"
        assert APIS[api.key].module == module


def test_every_api_has_one_test_file_and_every_other_one_is_of_all_apis() -> None:
    files = {path.stem.removeprefix("test_"): path for path in Path(__file__).parent.glob("test_*.py")}
    assert files.keys() - OF_ALL_APIS == {module for module, _ in DESCRIPTORS}
    for module, api in DESCRIPTORS:
        text = files[module].read_text("utf-8")
        assert text.startswith(f'"""{APIS[api.key].name}'), f"{files[module].name} does not say which API it tests"
        tests = re.findall(r"^def test_", text, re.MULTILINE)
        assert len(tests) >= TESTS_MIN, f"{files[module].name} has {len(tests)} tests"


def test_a_limit_that_can_be_configured_names_its_configuration() -> None:
    named = [limit.most for _, api in DESCRIPTORS for limit in api.limits if isinstance(limit.most, str)]
    assert "max.request.partition.size.limit" in named
    assert [name for name in named if documentation(SERVER_CONFIGS[name]).startswith(WITHOUT_EFFECT)] == []
    limits = (ROOT / "docs" / "reference" / "limits.md").read_text("utf-8")
    assert [name for name in named if f"`{name}`" not in limits] == []


@pytest.mark.parametrize("role", list(Role))
def test_every_version_that_can_be_decoded_is_served(role: Role) -> None:
    """A version that a spec file has and a descriptor lacks was forgotten there."""
    routes = routes_with_unstable(role)
    served = {APIS[key].name: (route.min_version, route.max_version) for key, route in routes.items()}
    decoded = {APIS[key].name: (APIS[key].min_version, APIS[key].max_version) for key in ROUTES[role]}
    assert served == decoded


def test_every_header_says_what_each_version_added() -> None:
    """Each version that has a field of its own, and the newest one."""
    silent = []
    for module, api in DESCRIPTORS:
        header = (SOURCE / "apis" / f"{module}.py").read_text("utf-8").split('"""')[1]
        named = {
            version
            for first, last in re.findall(r"\bv(\d+)(?:-(\d+))?\b", header)
            for version in range(int(first), int(last or first) + 1)
        }
        newest = APIS[api.key].max_version
        for version in sorted(({newest} | set(versions_with_fields(module))) - named):
            silent.append(f"apis/{module}.py does not say what v{version} added")
    assert silent == []


def versions_with_fields(module: str) -> Iterator[int]:
    """The versions after the first one in which messages of the API get a field."""
    spec = parse((SPECS / f"{module}.spec").read_text("utf-8"), module)
    structs = list(spec.blocks.values())
    while structs:
        for each in structs.pop().fields:
            if spec.versions.first < each.versions.first <= spec.versions.last:
                yield each.versions.first
            if each.struct is not None:
                structs.append(each.struct)


@pytest.mark.parametrize("role", list(Role))
def test_served_versions_can_be_decoded_and_advertised_ones_are_kafkas(role: Role) -> None:
    for key, route in ROUTES[role].items():
        known = APIS[key]
        assert known.min_version <= route.min_version <= route.max_version <= known.max_version
        assert route.advertised is None or route.advertised[1] <= known.kafka_max_version


def test_what_brokers_forward_controllers_serve_in_the_same_versions() -> None:
    for _, api in DESCRIPTORS:
        if isinstance(api.broker, Forwarded):
            assert api.controller is not None and api.controller.versions == api.broker.versions


@pytest.mark.parametrize("api", [api for _, api in DESCRIPTORS], ids=lambda api: api.key.name.lower())
def test_every_api_can_answer_that_nothing_was_done(api: Api[Any, Any]) -> None:
    """By `refused`, by an error code of the whole answer, or refusal by refusal in its guard."""
    guards = [served.guard for served in (api.broker, api.controller) if isinstance(served, Served) and served.needs]
    if api.refused is None and None in guards:
        assert "error_code" in response_class(api.key).FIELDS


def test_a_descriptor_without_a_refusal_of_its_own_answers_with_code_and_sentence() -> None:
    described = ROUTES[Role.CONTROLLER][ApiKey.DESCRIBE_QUORUM].api
    response = described.refusal(DescribeQuorumRequest(), ErrorCode.NOT_CONTROLLER)
    assert response.error_code == ErrorCode.NOT_CONTROLLER
    assert "active controller" in response.error_message


def test_versions_that_kafka_does_not_have_are_served_and_not_advertised() -> None:
    elect = entry(Api(key=ApiKey.ELECT_LEADERS, broker=Forwarded((0, 3))), Role.BROKER, "elect_leaders")
    ours = entry(Api(key=ApiKey.DESCRIBE_RECOVERY, broker=Forwarded((0, 0))), Role.BROKER, "describe_recovery")
    assert elect is not None and (elect.versions, elect.advertised) == ((0, 3), (0, 2))
    assert ours is not None and ours.advertised is None


def test_an_api_that_is_only_forwarded_is_served_without_its_file() -> None:
    route = ApiRoute(
        1, Role.BROKER, Entry("there_is_no_such_file", (0, 0), (0, 0), True, *[False] * (len(Entry._fields) - 4))
    )
    asked = []

    class Node:
        def forward(self, request: object, context: object, refusal: object) -> str:
            asked.append(request)
            return "answer"

    assert route.handle(Node(), "request", None) == "answer"  # type: ignore[arg-type]
    assert asked == ["request"]


# -- no other list ----------------------------------------------------------------------------------------------------


def lists_of_apis(text: str) -> Iterator[tuple[int, set[str]]]:
    """Where a collection, a match or a comparison names several APIs: its line, and their names."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Dict):
            parts: list[ast.AST | None] = [*node.keys, *node.values]
        elif isinstance(node, ast.List | ast.Tuple | ast.Set):
            parts = list(node.elts)
        elif isinstance(node, ast.Match):
            parts = [case.pattern for case in node.cases]
        elif isinstance(node, ast.BoolOp):
            parts = list(node.values)
        else:
            continue
        named = {name for part in parts if part is not None for name in apis_in(part)}
        if len(named) >= LIST_MIN:
            yield node.lineno, named


def apis_in(part: ast.AST) -> Iterator[str]:
    for node in ast.walk(part):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "ApiKey":
            yield node.attr
        elif isinstance(node, ast.Name) and node.id in MESSAGES:
            yield node.id.removesuffix("Request").removesuffix("Response")


def test_there_is_no_other_list_of_apis() -> None:
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        if not any(path == generated or generated in path.parents for generated in GENERATED):
            for line, named in lists_of_apis(path.read_text("utf-8")):
                found.append(f"{path.relative_to(ROOT)}:{line} names {', '.join(sorted(named))}")
    assert found == [], "a fact of an API belongs into its file in heirlog/apis: " + "; ".join(found)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("X = {ApiKey.FETCH, ApiKey.PRODUCE, ApiKey.VOTE}", {"FETCH", "PRODUCE", "VOTE"}),
        ("X = {ApiKey.FETCH: 1, ApiKey.PRODUCE: 2, ApiKey.VOTE: 3}", {"FETCH", "PRODUCE", "VOTE"}),
        ("X = frozenset((FetchRequest, ProduceRequest, VoteRequest))", {"Fetch", "Produce", "Vote"}),
        ("X = {FetchRequest: a, ProduceRequest: b, VoteRequest: c}", {"Fetch", "Produce", "Vote"}),
        ("X = [(ApiKey.FETCH, 1), (ApiKey.PRODUCE, 2), (ApiKey.VOTE, 3)]", {"FETCH", "PRODUCE", "VOTE"}),
        ("X = k == ApiKey.FETCH or k == ApiKey.PRODUCE or k == ApiKey.VOTE", {"FETCH", "PRODUCE", "VOTE"}),
    ],
)
def test_the_check_notices_a_list(text: str, named: set[str]) -> None:
    assert [names for _, names in lists_of_apis(text)] == [named]
