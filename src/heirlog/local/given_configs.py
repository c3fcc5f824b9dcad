"""Properties for every node of a local cluster, as `heirlog up --config NAME=VALUE` takes them.

They are written into each server.properties when the folder is made, and not again: later the files count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from heirlog.local import properties
from heirlog.local.errors import LocalError
from heirlog.local.layout import OWN_PROPERTIES, PROPERTIES, Layout


def parsed(given: Iterable[str]) -> dict[str, str]:
    """Raises LocalError for what no node would start with, before anything is written."""
    from heirlog.metadata.config_def import ConfigError, parse_static

    found: dict[str, str] = {}
    for text in given:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name:
            raise LocalError(f"{text!r} is not of the form NAME=VALUE")
        if name in found:
            raise LocalError(f"{name} is given twice")
        if name in OWN_PROPERTIES:
            raise LocalError(f"{name} is different on each node, and cannot be given for all")
        if name in properties.FOR_ONE_START:
            raise LocalError(f"{name} is for one start only: {properties.FOR_ONE_START[name]}")
        found[name] = value
    node = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": "PLAINTEXT://127.0.0.1:1,CONTROLLER://127.0.0.1:2",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": "127.0.0.1:2",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": "/nonexistent",
    }
    try:
        parse_static({**node, **found})
    except ConfigError as error:
        # others may only follow from the listeners, which are not these
        if error.name in found:
            raise LocalError(properties.config_sentence(error)) from None
    return found


def refuse_others(layout: Layout, given: Mapping[str, str]) -> None:
    """For a cluster that is there. Raises LocalError."""
    for node in layout.nodes:
        there = properties.read(node.properties_path)
        for name, value in given.items():
            if there.get(name) != value:
                # not its value, which may be a secret
                has = "another" if name in there else "no"
                raise LocalError(
                    f"{node.properties_path} has {has} {name}: --config is for a new folder. Edit {PROPERTIES} in the "
                    f"folder of each node in {layout.data}, and leave the option out"
                )
