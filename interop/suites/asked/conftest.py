"""Where the broker is, and names that nobody else uses."""

from __future__ import annotations

import os
import uuid

import pytest
from confluent_kafka.admin import AdminClient, NewTopic


@pytest.fixture
def address() -> str:
    return os.environ["SUITE_ADDRESS"]


@pytest.fixture
def name() -> str:
    """Of a topic or a group that does not exist."""
    return f"n-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def admin(address: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": address})


@pytest.fixture
def topic(admin: AdminClient, name: str) -> str:
    """Of two partitions."""
    admin.create_topics([NewTopic(f"t{name}", 2, 1)])[f"t{name}"].result(20)
    return f"t{name}"
