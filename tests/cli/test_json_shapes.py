"""docs/reference/json.md has every command; `cli.conftest` compares what each of them prints in all tests."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from cli.conftest import Heirlog
from cli.json_shapes import REFERENCE, mistakes, shapes

from heirlog.blocking import Client
from heirlog.protocol.batch import encode_batch
from heirlog.testing import Cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    config = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    with Cluster(nodes=1, combined=True, ledger=False, config=config) as running:
        running.create_topic("t")
        yield running


@pytest.mark.usefixtures("default_cluster")
def test_commands_that_other_tests_run_without_json(cluster: Cluster, heirlog: Heirlog) -> None:
    """The fixture `heirlog` compares."""
    feature = "eligible.leader.replicas.version"
    with Client(cluster.bootstrap_servers) as client, client.transactional_producer("tx") as producer:
        producer.begin()
        producer.send("t", 0, encode_batch([(None, b"v", (), 0)]))
        for line in (
            "acls add --allow-principal User:a --operation Read --topic t",
            "acls list",
            "acls remove --topic t --yes",
            "transactions describe tx",
            f"features downgrade {feature}=0 --dry-run",
            f"features upgrade {feature}=1 --dry-run",
            f"features disable {feature} --dry-run",
            "recover run --yes",
        ):
            outcome = heirlog(*line.split(), "--json")
            assert outcome.code == 0, f"{line}: {outcome.err}"
        producer.commit()
    assert heirlog("transactions", "describe", "tx", "--json").code == 0


def test_every_command_with_json_is_on_the_page() -> None:
    sections = re.split(r"^## `heirlog ", (REFERENCE / "cli.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    wanted = {section.partition("`")[0] for section in sections if "`--json`" in section}
    assert len(wanted) > 50
    assert set(shapes()) == wanted


@pytest.mark.parametrize(
    ("out", "said"),
    [
        ('[{"topic": "a", "topic_id": "x", "partitions": 1, "internal": false}]', []),
        ('{"topic": "a"}', ["heirlog topics list: the value is no array: {'topic': 'a'}"]),
        ('[{"topic": "a", "topic_id": "x", "partitions": 1}]', ["heirlog topics list: [0].internal is missing"]),
        (
            '[{"topic": null, "topic_id": "x", "partitions": true, "internal": false, "new": 1}]',
            [
                "heirlog topics list: [0].topic is not of type string: None",
                "heirlog topics list: [0].partitions is not of type integer: True",
                "heirlog topics list: [0].new is not on the page",
            ],
        ),
    ],
)
def test_what_is_not_as_the_page_says_is_found(out: str, said: list[str]) -> None:
    assert mistakes(["topics", "list", "--json"], out) == said
