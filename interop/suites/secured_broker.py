"""A pytest plugin for kafka-python's tests: the brokers that their fixture would start are one that runs already.

HEIRLOG_SECURED_PORTS has a port for each protocol, HEIRLOG_SECURED_HOME a folder with `ca-cert`.
"""

from __future__ import annotations

import json
import os
from typing import Any


def pytest_collection_modifyitems() -> None:
    ports = json.loads(os.environ["HEIRLOG_SECURED_PORTS"])
    from test.integration.fixtures import KafkaFixture  # type: ignore[import-not-found]

    def instance(
        cls: Any, broker_id: int, transport: str = "PLAINTEXT", sasl_mechanism: str | None = None, **_: Any
    ) -> Any:
        made = KafkaFixture(
            "localhost", ports[transport], broker_id, transport=transport, sasl_mechanism=sasl_mechanism, external=True
        )
        made.open()
        # for what it would have written into the broker's files
        made.jaas_config = made._jaas_config()
        made.ssl_dir = os.environ["HEIRLOG_SECURED_HOME"]
        import py  # type: ignore[import-untyped]

        made.tmp_dir = py.path.local.mkdtemp()
        return made

    KafkaFixture.instance = classmethod(instance)
