"""How a user connects, in the names of each client: Kafka's client properties, and what other libraries call the same.

java           as they are: Kafka's own clients and tools, Kafka Connect, `--command-config`
spark          the same behind `kafka.`: options of Spark's format "kafka" and of heirlog's
librdkafka     confluent-kafka, kcat: PEM files, the user's name and password on their own
kafka-python   keyword arguments, for the same files
aiokafka       keyword arguments, with an `ssl.SSLContext` in place of files
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from heirlog.local.errors import LocalError
from heirlog.security.jaas import parse_jaas

Properties = Mapping[str, str]
SERVERS: Final = "bootstrap.servers"


def check(library: str) -> None:
    """Raises LocalError."""
    if library not in _MADE:
        raise LocalError(f"{library!r} is not a client whose names are known; use one of {', '.join(_MADE)}")


def in_names_of(library: str, given: Properties) -> dict[str, Any]:
    """library: checked. given: Kafka's client properties with PEM stores, as `secure.client_config` has them."""
    return _MADE[library](given)


def _of_java(given: Properties) -> dict[str, Any]:
    return dict(given)


def _of_spark(given: Properties) -> dict[str, Any]:
    return {f"kafka.{name}": value for name, value in given.items()}


def _of_librdkafka(given: Properties) -> dict[str, Any]:
    found = {SERVERS: given[SERVERS]}
    if "security.protocol" in given:
        found["security.protocol"] = given["security.protocol"]
    if "ssl.truststore.location" in given:
        found["ssl.ca.location"] = given["ssl.truststore.location"]
    if "ssl.keystore.location" in given:
        found |= dict.fromkeys(("ssl.certificate.location", "ssl.key.location"), given["ssl.keystore.location"])
    if "sasl.jaas.config" in given:
        login = parse_jaas(given["sasl.jaas.config"]).options
        found |= {"sasl.mechanism": given["sasl.mechanism"], "sasl.username": login["username"]}
        found["sasl.password"] = login["password"]
    return found


_KAFKA_PYTHON: Final = {
    SERVERS: "bootstrap_servers",
    "security.protocol": "security_protocol",
    "ssl.ca.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.key.location": "ssl_keyfile",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
}


def _of_kafka_python(given: Properties) -> dict[str, Any]:
    return {_KAFKA_PYTHON[name]: value for name, value in _of_librdkafka(given).items()}


def _of_aiokafka(given: Properties) -> dict[str, Any]:
    found = _of_kafka_python(given)
    authority, *own = (found.pop(name, None) for name in ("ssl_cafile", "ssl_certfile", "ssl_keyfile"))
    if authority is not None:
        import ssl  # takes a while, and other clients do not need it

        found["ssl_context"] = ssl.create_default_context(cafile=authority)
        if own[0] is not None:
            found["ssl_context"].load_cert_chain(*own)
    return found


_MADE: Final[Mapping[str, Callable[[Properties], dict[str, Any]]]] = {
    "java": _of_java,
    "librdkafka": _of_librdkafka,
    "kafka-python": _of_kafka_python,
    "aiokafka": _of_aiokafka,
    "spark": _of_spark,
}
