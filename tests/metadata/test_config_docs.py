"""What each configuration is for: said of those that do something, and of the others that they do nothing."""

from __future__ import annotations

import re
from pathlib import Path

import heirlog
from heirlog.metadata import server_configs
from heirlog.metadata.absent_configs import ABSENT_CONFIGS
from heirlog.metadata.config_docs import DOCS, WITHOUT_EFFECT, documentation
from heirlog.metadata.definition import ConfigKey
from heirlog.metadata.group_configs import GROUP_CONFIGS
from heirlog.metadata.server_configs import SERVER_CONFIGS
from heirlog.metadata.topic_configs import TOPIC_CONFIGS

EVERY = {**SERVER_CONFIGS, **TOPIC_CONFIGS, **GROUP_CONFIGS}
SOURCES = Path(heirlog.__file__).parent
TABLES = {
    "server_configs.py",
    "topic_configs.py",
    "group_configs.py",
    "absent_configs.py",
    "security_configs.py",
    "config_docs.py",
    "dynamic_changes.py",
}
"""What may be set, also where it is without effect."""
CLIENTS_OF_KAFKA = ("cli", "testing")
"""They set what others act on."""


def product() -> str:
    files = (path for path in SOURCES.rglob("*.py") if path.name not in TABLES)
    return "".join(path.read_text() for path in files if path.relative_to(SOURCES).parts[0] not in CLIENTS_OF_KAFKA)


def test_every_configuration_says_what_it_is_for() -> None:
    assert set(DOCS) <= set(EVERY)
    assert all(len(documentation(definition)) > 20 for definition in EVERY.values())
    assert "no Kerberos" in documentation(ABSENT_CONFIGS["sasl.kerberos.service.name"])


def test_what_is_said_to_be_without_effect_is_read_by_nobody() -> None:
    source = product()
    idle = [name for name, one in EVERY.items() if documentation(one).startswith(WITHOUT_EFFECT)]
    read_by_topics = {name for one in TOPIC_CONFIGS.values() for name, _ in one.synonyms if one.name in DOCS}
    read = [name for name in idle if f'"{name}"' in source or name in read_by_topics]
    assert [name for name in read if name not in ABSENT_CONFIGS] == [], "say in config_docs.py what these are for"
    silent = [name for name in DOCS if f'"{name}"' not in source and name not in read_by_topics | set(TOPIC_CONFIGS)]
    bounds = re.compile(
        r"group\.(consumer|share)\.((min|max)\.)?(heartbeat\.interval|session\.timeout|record\.lock\.duration)\.ms"
    )
    silent = [name for name in silent if not bounds.fullmatch(name)]  # defaults and limits of those of a group
    assert silent == [], "no code reads these: they have no effect"


def test_what_heirlog_has_is_not_in_the_table_of_what_it_lacks() -> None:
    """The definition in `server_configs` would hide the other one."""
    own = {one.name for table in vars(server_configs).values() if _is_table(table) for one in table}
    assert own | set(ABSENT_CONFIGS) == set(SERVER_CONFIGS)
    assert own & set(ABSENT_CONFIGS) == set()


def _is_table(value: object) -> bool:
    return isinstance(value, tuple) and bool(value) and all(isinstance(one, ConfigKey) for one in value)
