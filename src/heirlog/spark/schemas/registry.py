"""A schema registry: the schema of an id, asked over HTTP once and then kept.

Two interfaces are known: Confluent's, which Confluent, Karapace, Redpanda and Apicurio (`/apis/ccompat/v7`) serve, and
Apicurio's own (an address with `/apis/registry/`). An id never changes its schema, so what was found is kept for the
life of the process. An id that is not there may be registered later: that is kept for a minute.

    no answer, 429, 5xx    tried again, then RegistryError: a query must not take an outage for bad values
    401, 403, redirects    RegistryError
    404                    UnknownSchema
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import time
import urllib.error
import urllib.request
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast
from urllib.parse import quote, urlsplit

SCHEMAS_MAX = 1000
"""Kept for each process and registry."""
UNKNOWN_S = 60.0
ANSWER_BYTES_MAX = 4 * 1024 * 1024
REFERENCES_MAX = 100
"""Of one schema, those of its references included."""
ATTEMPTS = 4
FIRST_PAUSE_S = 0.2
_OWN_INTERFACE = "/apis/registry/"


class RegistryError(OSError):
    """The registry gave no usable answer."""


class UnknownSchema(LookupError):
    """The registry has no such schema."""


@dataclass(frozen=True)
class Registry:
    """Where the schemas are. `global_ids` is for Apicurio's own interface: ids of versions instead of contents."""

    url: str
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    ca_file: str | None = None
    global_ids: bool = False
    timeout_s: float = 10.0

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"the address of a schema registry is like http://host:8081, not {parts.geturl()!r}")
        if parts.username is not None or parts.password is not None:
            raise ValueError("give the registry's username and password as arguments, not in its address")


class Schema(NamedTuple):
    text: str
    references: tuple[str, ...] = ()
    """Texts of the schemas that it uses by name, each after those that it needs itself."""


class RegistryClient:
    """For one process. Use `client_of`."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._is_own_interface = _OWN_INTERFACE in registry.url
        self._found: OrderedDict[int, Schema] = OrderedDict()
        self._missing: OrderedDict[int, float] = OrderedDict()
        context = ssl.create_default_context(cafile=registry.ca_file) if registry.url.startswith("https") else None
        self._opener = urllib.request.build_opener(_NoRedirect, urllib.request.HTTPSHandler(context=context))

    def schema(self, schema_id: int) -> Schema:
        """Raises UnknownSchema, RegistryError."""
        found = self._found.get(schema_id)
        if found is not None:
            return found
        if time.monotonic() - self._missing.get(schema_id, -UNKNOWN_S) < UNKNOWN_S:
            raise self._unknown(schema_id)
        try:
            found = self._fetched(schema_id)
        except UnknownSchema:
            _keep(self._missing, schema_id, time.monotonic())
            raise self._unknown(schema_id) from None
        _keep(self._found, schema_id, found)
        return found

    def latest(self, subject: str) -> Schema:
        """The newest version of a subject; of an artifact `group/name` or `name` with Apicurio's own interface.

        Raises UnknownSchema, RegistryError."""
        try:
            if self._is_own_interface:
                group, _, artifact = subject.rpartition("/")
                return self._version({"groupId": group or "default", "artifactId": artifact, "version": None})
            return self._with_references(self._json(f"/subjects/{quote(subject, safe='')}/versions/latest"))
        except UnknownSchema:
            raise UnknownSchema(f"the schema registry {self._registry.url} has no subject {subject}") from None

    def _unknown(self, schema_id: int) -> UnknownSchema:
        return UnknownSchema(
            f"the schema registry {self._registry.url} has no schema with the id {schema_id}. Check that the value was "
            f"written with this registry, and that framing and the kind of ids are those of its serializer"
        )

    def _fetched(self, schema_id: int) -> Schema:
        if not self._is_own_interface:
            return self._with_references(self._json(f"/schemas/ids/{schema_id}"))
        path = f"/ids/{'globalIds' if self._registry.global_ids else 'contentIds'}/{schema_id}"
        return Schema(self._get(path).decode(), self._references(self._json(f"{path}/references")))

    def _with_references(self, answer: Any) -> Schema:
        return Schema(str(answer["schema"]), self._references(answer.get("references") or ()))

    def _references(self, named: Any) -> tuple[str, ...]:
        texts: dict[str, None] = {}
        for one in named:
            found = self._version(one)
            texts.update(dict.fromkeys((*found.references, found.text)))
            if len(texts) > REFERENCES_MAX:
                raise RegistryError(f"{self._registry.url}: a schema refers to more than {REFERENCES_MAX} others")
        return tuple(texts)

    def _version(self, named: dict[str, Any]) -> Schema:
        if not self._is_own_interface:
            subject = quote(str(named["subject"]), safe="")
            return self._with_references(self._json(f"/subjects/{subject}/versions/{int(named['version'])}"))
        group = quote(str(named.get("groupId") or "default"), safe="")
        version = quote(str(named["version"] or "branch=latest"), safe="=")
        path = f"/groups/{group}/artifacts/{quote(str(named['artifactId']), safe='')}/versions/{version}"
        return Schema(self._get(f"{path}/content").decode(), self._references(self._json(f"{path}/references")))

    def _json(self, path: str) -> Any:
        answer = self._get(path)
        try:
            return json.loads(answer)
        except ValueError as error:
            raise RegistryError(f"{self._registry.url}{path}: the answer is not JSON. Check the address") from error

    def _get(self, path: str) -> bytes:
        address = self._registry.url.rstrip("/") + path
        request = urllib.request.Request(address, headers={"Accept": "*/*", **self._login()})
        for left in reversed(range(ATTEMPTS)):
            try:
                with self._opener.open(request, timeout=self._registry.timeout_s) as answer:
                    body = cast(bytes, answer.read(ANSWER_BYTES_MAX + 1))
                if len(body) > ANSWER_BYTES_MAX:
                    raise RegistryError(f"{address}: the answer has more than {ANSWER_BYTES_MAX} bytes")
                return body
            except urllib.error.HTTPError as error:
                error.close()
                if error.code == 404:
                    raise UnknownSchema(address) from error
                if not left or (error.code != 429 and error.code < 500):
                    raise RegistryError(f"{address}: {self._meaning(error)}") from error
            except RegistryError:
                raise
            except (OSError, http.client.HTTPException) as error:
                if not left:
                    cause = getattr(error, "reason", None) or error
                    raise RegistryError(
                        f"the schema registry {self._registry.url} cannot be reached after {ATTEMPTS} attempts: "
                        f"{cause}. Check its address, and that the machines of Spark's workers reach it"
                    ) from error
            time.sleep(FIRST_PAUSE_S * 2 ** (ATTEMPTS - 1 - left))
        raise AssertionError("the last attempt returns or raises")

    def _login(self) -> dict[str, str]:
        registry = self._registry
        if registry.token is not None:
            return {"Authorization": f"Bearer {registry.token}"}
        if registry.username is None:
            return {}
        login = f"{registry.username}:{registry.password or ''}".encode()
        return {"Authorization": f"Basic {base64.b64encode(login).decode()}"}

    def _meaning(self, error: urllib.error.HTTPError) -> str:
        if error.code in (401, 403):
            return f"the registry refused the login (HTTP {error.code}). Give username and password, or a token"
        if error.code < 400:
            return f"the registry answered with another address (HTTP {error.code}). Give that one"
        return f"HTTP {error.code} {error.reason}"


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """The login must not be sent to another host."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def _keep(kept: OrderedDict[int, Any], key: int, value: object) -> None:
    kept[key] = value
    if len(kept) > SCHEMAS_MAX:
        kept.popitem(last=False)


_clients: dict[Registry, RegistryClient] = {}


def client_of(registry: Registry) -> RegistryClient:
    """This process's, so that all tasks of a worker share what was found."""
    if registry not in _clients:
        _clients[registry] = RegistryClient(registry)
    return _clients[registry]
