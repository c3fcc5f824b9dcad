"""What each configuration is for: said of those that do something, and of the others that they do nothing."""

from __future__ import annotations

from pathlib import Path

import heirlog
from heirlog.metadata.absent_configs import ABSENT_CONFIGS
from heirlog.metadata.config_docs import DOCS, WITHOUT_EFFECT, documentation
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
    assert "no TLS" in documentation(ABSENT_CONFIGS["ssl.client.auth"])


def test_what_is_said_to_be_without_effect_is_read_by_nobody() -> None:
    source = product()
    idle = [name for name, one in EVERY.items() if documentation(one).startswith(WITHOUT_EFFECT)]
    assert [name for name in idle if f'"{name}"' in source and name not in ABSENT_CONFIGS] == []
    read_by_topics = {name for one in TOPIC_CONFIGS.values() for name, _ in one.synonyms}
    silent = [name for name in DOCS if f'"{name}"' not in source and name not in read_by_topics | set(TOPIC_CONFIGS)]
    assert silent == ["group.coordinator.rebalance.protocols"]
