"""`heirlog users`, `--command-config` and `heirlog up --secure`'s files, through commands as a person types them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from heirlog.local import properties
from heirlog.testing import Cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(nodes=1, combined=True, security="SASL_PLAINTEXT") as running:
        yield running


def heirlog(*arguments: str, said: str = "", environment: dict[str, str] | None = None) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "heirlog", *arguments],
        input=said,
        capture_output=True,
        text=True,
        timeout=60,
        env=environment,
    )
    return done.returncode, done.stdout, done.stderr


def admin_file(cluster: Cluster) -> str:
    return str(cluster.data / "client.properties")


def test_a_user_is_set_listed_and_deleted(cluster: Cluster) -> None:
    login = ("--command-config", admin_file(cluster))
    code, out, err = heirlog("users", "set", "erin", "--iterations", "8192", *login, said="her password\n")
    assert (code, err) == (0, ""), err
    assert "erin can log in with SCRAM-SHA-512" in out and "her password" not in out
    code, out, _ = heirlog("users", "list", "--json", *login)
    assert {"user": "erin", "mechanism": "SCRAM-SHA-512", "iterations": 8192} in json.loads(out)
    given = properties.read(admin_file(cluster))
    given["sasl.jaas.config"] = (
        'org.apache.kafka.common.security.scram.ScramLoginModule required username="erin" password="her password";'
    )
    own = cluster.data / "erin.properties"
    own.write_text(properties.render(given, "erin"))
    assert heirlog("topics", "list", "--command-config", str(own))[0] == 0
    assert heirlog("users", "delete", "erin", *login)[0] == 0
    code, _, err = heirlog("topics", "list", f"--command-config={own}")
    assert code == 1 and "invalid credentials" in err and "her password" not in err
    code, _, err = heirlog("users", "delete", "erin", *login)
    assert code == 1 and "does not exist" in err


def test_without_a_login_nothing_is_shown(cluster: Cluster) -> None:
    code, _, err = heirlog("users", "list", "-b", cluster.bootstrap_servers)
    assert code == 1 and "does it want TLS, or SASL?" in err and "give --command-config FILE" in err


def test_another_protocol_than_that_of_the_port_is_named(cluster: Cluster, tmp_path: Path) -> None:
    given = properties.read(admin_file(cluster))
    wrong = tmp_path / "wrong.properties"
    wrong.write_text(properties.render({**given, "security.protocol": "SASL_SSL"}, "wrong"))
    code, _, err = heirlog("users", "list", "--command-config", str(wrong))
    assert code == 1 and "--command-config has security.protocol=SASL_SSL" in err, err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("users", "set", "a", "--mechanism", "PLAIN"), "--mechanism PLAIN"),
        (("users", "set", "älice"), "whose names are ASCII"),
        (("users", "set", "alice"), "the password is empty"),
        (("topics", "list", "--command-config", "/no/such/file"), "there is no configuration file"),
        (("topics", "list", "--command-config"), "requires an argument"),
        (("storage", "random-uuid", "--command-config", "x"), "No such option"),
    ],
)
def test_what_is_wrong_is_said(arguments: tuple[str, ...], sentence: str) -> None:
    code, _, err = heirlog(*arguments)
    assert code in (1, 2) and sentence in err, err


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("PLAIN=[name=a,password=b]", "is of the form"),
        ("SCRAM-SHA-512=name=a", "is of the form"),
        ("SCRAM-SHA-512=[name=a]", "either a password or a saltedpassword"),
        ("SCRAM-SHA-512=[password=hidden]", "needs a name"),
        ("SCRAM-SHA-512=[name=a,password=hidden,iterations=1]", "4096 to 16384"),
        ("SCRAM-SHA-512=[name=a,password=hidden,iterations=x]", "a whole number"),
        ("SCRAM-SHA-512=[name=a,saltedpassword=aGlkZGVu]", "needs the salt"),
        ("SCRAM-SHA-512=[name=a,saltedpassword=hidden!,salt=aGlkZGVu]", "its saltedpassword is not base64"),
        ("SCRAM-SHA-512=[name=a,saltedpassword=aGlkZGVu,salt=aGlkZGVu]", "has 64 bytes"),
        ("SCRAM-SHA-512=[name=a,password=hidden,salt=b]", "its salt is not base64"),
        ('SCRAM-SHA-512=[name=a,password=hidden,salt=""]', "a salt has 1 to 1024 bytes"),
        (f"SCRAM-SHA-512=[name=a,password=hidden,iterations={'4' * 5000}]", "a whole number"),
        ("SCRAM-SHA-512=[name=a,color=hidden]", "each once"),
    ],
)
def test_a_user_that_cannot_be_formatted_is_refused(tmp_path: Path, given: str, sentence: str) -> None:
    config = tmp_path / "server.properties"
    config.write_text(
        "process.roles=broker\nnode.id=1\nlisteners=PLAINTEXT://127.0.0.1:1\ncontroller.listener.names=C\n"
        f"controller.quorum.bootstrap.servers=127.0.0.1:2\nlog.dirs={tmp_path}/log\n"
    )
    code, out, err = heirlog("storage", "format", "-t", "cluster", "-c", str(config), "--add-scram", given)
    assert code == 1 and sentence in err and "hidden" not in out + err
    assert not (tmp_path / "log").exists()


def test_a_formatted_user_logs_in(tmp_path: Path) -> None:
    from heirlog.cli.format_options import scram_wanted
    from heirlog.security.scram import ScramMechanism, credential_of, salted_password

    (record,) = scram_wanted(['SCRAM-SHA-256=[name=alice,password="se=cret",iterations=5000]'])
    sha_256 = ScramMechanism.SHA_256
    salted = salted_password(sha_256, "se=cret", record.salt, 5000)
    assert credential_of(sha_256, salted, record.salt, 5000).stored_key == record.stored_key
    assert (record.name, record.mechanism, record.iterations) == ("alice", 1, 5000)
