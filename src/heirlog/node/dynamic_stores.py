"""Key and trust stores of listeners that change while the node runs, by its dynamic configurations (KIP-226).

    asked for    the node itself tries the stores before the request is forwarded: what it cannot use is not stored
    stored       the body makes new contexts, for new connections, also if the values are the old ones: the usual
                 rotation replaces a file and stores its location again
    a snapshot   the same, if it has any: it does not tell whether they were stored again since
    at a start   once the metadata is as new as the quorum's; until then the stores of the file count

What is stored and cannot be used (a file that is gone, a change that was sent to a controller) leaves everything as it
is. As on Kafka, files are read again with each dynamic configuration of this node, whichever it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from heirlog.metadata.image import BROKER_RESOURCE, Image
from heirlog.metadata.journal import ImageJournal
from heirlog.metadata.listener_security import store_of_listener, stores_by_listener


class ListenerStores(Protocol):
    """The body's. stores: by listener, what differs from the file, as Kafka's configurations without their prefix."""

    def reason_against(self, stores: Mapping[str, Mapping[str, str]]) -> str | None: ...

    def use(self, stores: Mapping[str, Mapping[str, str]]) -> None: ...


class DynamicStores:
    def __init__(self, body: ListenerStores | None, node_id: int) -> None:
        """body: None in a body without files and sockets."""
        self._body = body
        self._name = str(node_id)

    def follow(self, image: Image, changed: ImageJournal) -> None:
        if self._body is None:
            return
        stores = stores_by_listener(self._configs(image))
        is_changed = (BROKER_RESOURCE, self._name) in changed.changed_config_resources()
        if is_changed or (changed.is_of_snapshot and stores):
            self._body.use(stores)

    def reason_against(self, image: Image, changes: Mapping[str, str | None]) -> str | None:
        """Why the node cannot serve its listeners with its configurations changed like this; None: it can."""
        if self._body is None or not any(store_of_listener(name) for name in changes):
            return None
        then = {**self._configs(image), **changes}
        return self._body.reason_against(
            stores_by_listener({name: text for name, text in then.items() if text is not None})
        )

    def _configs(self, image: Image) -> Mapping[str, str]:
        return image.configs.get((BROKER_RESOURCE, self._name), {})
