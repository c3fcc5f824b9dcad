from __future__ import annotations

from collections.abc import Iterator

import pytest
from spark.schemas.answers import Answers, registry_answers

from heirlog.spark.schemas import registry as module
from heirlog.spark.schemas.registry import Registry, RegistryClient, RegistryError, Schema, UnknownSchema, client_of


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Answers]:
    monkeypatch.setattr(module, "FIRST_PAUSE_S", 0.001)
    with registry_answers() as started:
        yield started


def test_a_schema_is_asked_for_once(answers: Answers) -> None:
    answers.of["/schemas/ids/7"] = {"schema": '"long"', "references": []}
    client = RegistryClient(Registry(answers.url))
    assert [client.schema(7), client.schema(7)] == [Schema('"long"')] * 2
    assert answers.asked == ["/schemas/ids/7"]


def test_an_unknown_id_is_asked_for_again_only_after_a_minute(
    answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = RegistryClient(Registry(answers.url + "/"))
    for _ in range(2):
        with pytest.raises(UnknownSchema, match=r"has no schema with the id 8\. Check that the value was written with"):
            client.schema(8)
    assert answers.asked == ["/schemas/ids/8"]
    answers.of["/schemas/ids/8"] = {"schema": '"int"'}
    monkeypatch.setattr(module, "UNKNOWN_S", 0.0)
    assert client.schema(8).text == '"int"'


def test_only_so_many_schemas_are_kept(answers: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SCHEMAS_MAX", 2)
    client = RegistryClient(Registry(answers.url))
    for number in (1, 2, 3):
        answers.of[f"/schemas/ids/{number}"] = {"schema": '"int"'}
        client.schema(number)
    client.schema(3)
    client.schema(1)
    assert answers.asked == [f"/schemas/ids/{number}" for number in (1, 2, 3, 1)]


def test_what_a_schema_uses_by_name_comes_before_it(answers: Answers) -> None:
    item = {"name": "shop.item", "subject": "shop/item", "version": 2}
    answers.of["/schemas/ids/1"] = {"schema": "order", "references": [item]}
    answers.of["/subjects/shop%2Fitem/versions/2"] = {
        "schema": "item",
        "references": [{"name": "shop.unit", "subject": "unit", "version": 1}],
    }
    answers.of["/subjects/unit/versions/1"] = {"schema": "unit"}
    assert RegistryClient(Registry(answers.url)).schema(1) == Schema("order", ("unit", "item"))


def test_apicurio_s_own_interface_is_used_where_the_address_says_so(answers: Answers) -> None:
    base = "/apis/registry/v3"
    answers.of[f"{base}/ids/contentIds/1"] = "content"
    answers.of[f"{base}/ids/globalIds/1"] = "version"
    for kind in ("contentIds", "globalIds"):
        answers.of[f"{base}/ids/{kind}/1/references"] = [
            {"groupId": None, "artifactId": "a", "version": "2", "name": "n"}
        ]
    answers.of[f"{base}/groups/default/artifacts/a/versions/2/content"] = "referred"
    answers.of[f"{base}/groups/default/artifacts/a/versions/2/references"] = []
    answers.of[f"{base}/groups/shop/artifacts/a/versions/branch=latest/content"] = "latest"
    answers.of[f"{base}/groups/shop/artifacts/a/versions/branch=latest/references"] = []
    own = Registry(answers.url + base)
    assert RegistryClient(own).schema(1) == Schema("content", ("referred",))
    assert RegistryClient(own).latest("shop/a").text == "latest"
    assert RegistryClient(Registry(answers.url + base, global_ids=True)).schema(1).text == "version"


def test_a_registry_that_fails_for_a_moment_is_asked_again(answers: Answers) -> None:
    answers.of["/subjects/s/versions/latest"] = {"schema": '"int"'}
    answers.failures = module.ATTEMPTS - 1
    assert RegistryClient(Registry(answers.url)).latest("s").text == '"int"'
    answers.failures = module.ATTEMPTS
    with pytest.raises(RegistryError, match="HTTP 503"):
        RegistryClient(Registry(answers.url)).latest("s")
    with pytest.raises(UnknownSchema, match=r"has no subject t$"):
        RegistryClient(Registry(answers.url)).latest("t")


def test_a_registry_that_does_not_answer_is_an_error_that_says_what_to_check(answers: Answers) -> None:
    with pytest.raises(RegistryError, match=r"cannot be reached after 4 attempts: .*refused\. Check its address"):
        RegistryClient(Registry("http://127.0.0.1:1")).schema(1)


def test_a_login_is_sent_and_a_refused_one_is_not_tried_again(answers: Answers) -> None:
    answers.of["/schemas/ids/1"] = 401
    with pytest.raises(RegistryError, match="refused the login") as failed:
        RegistryClient(Registry(answers.url, "user", "hunter2")).schema(1)
    assert answers.logins == ["Basic dXNlcjpodW50ZXIy"]
    assert "hunter2" not in str(failed.value) + repr(Registry(answers.url, "user", "hunter2"))
    with pytest.raises(RegistryError):
        RegistryClient(Registry(answers.url, token="t")).schema(1)
    assert answers.logins[1:] == ["Bearer t"]


def test_the_login_is_not_sent_to_another_address(answers: Answers) -> None:
    answers.of["/schemas/ids/1"] = 302
    with pytest.raises(RegistryError, match="answered with another address"):
        RegistryClient(Registry(answers.url)).schema(1)


@pytest.mark.parametrize(
    ("answer", "why"), [("<html>", "is not JSON"), ("x" * (module.ANSWER_BYTES_MAX + 1), "has more than 4194304 bytes")]
)
def test_an_answer_that_no_registry_gives_is_an_error(answers: Answers, answer: str, why: str) -> None:
    answers.of["/schemas/ids/1"] = answer
    with pytest.raises(RegistryError, match=why):
        RegistryClient(Registry(answers.url)).schema(1)


@pytest.mark.parametrize("url", ["localhost:8081", "file:///etc/passwd", "http://u:p@h:1", "http://"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"address|its address"):
        Registry(url)


def test_the_tasks_of_a_worker_share_a_client() -> None:
    assert client_of(Registry("http://h:1")) is client_of(Registry("http://h:1"))
    assert client_of(Registry("http://h:1")) is not client_of(Registry("http://h:2"))
