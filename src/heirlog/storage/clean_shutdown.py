"""`.kafka_cleanshutdown`: did the last incarnation stop cleanly, and under which broker epoch was it registered?

    running      no file
    stopped      {"version":0,"brokerEpoch":37}, written and flushed after everything else in the directory
    starting     read first; it still counts if this start ends before the broker is registered
    registered   unlinked, and the directory synced, before anything is appended or truncated

An unclean stop is the default assumption: a file that is missing, torn or odd in any way means unclean. The epoch goes
to the controller with the next registration (KIP-966, "Detection of an unclean shutdown"); -1 there makes the broker
leave every ISR and ELR. The KIP spells the member `BrokerEpoch` with a string value: read too.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from heirlog.env import Buffer, Files
from heirlog.protocol.types import NO_BROKER_EPOCH, BrokerEpoch
from heirlog.storage.atomic import OnDurable, read_file

CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"


def decide_previous_broker_epoch(directories: Sequence[BrokerEpoch | None]) -> BrokerEpoch:
    """The epoch of the last incarnation, or -1: it did not stop cleanly.

    directories: for each configured directory the epoch in its file; None if the directory is offline or has no
    readable file. All must be equal; any -1 means unclean (Kafka ignores a -1 in an earlier directory: scenario K066 of
    docs/internals/kafka-behaviour.md).
    """
    first = directories[0] if directories else None
    if first is None or first < 0 or any(epoch != first for epoch in directories):
        return NO_BROKER_EPOCH
    return first


def read_clean_shutdown(files: Files, path: str) -> BrokerEpoch | None:
    """The broker epoch in the file of this directory (-1: never registered); None: not stopped cleanly."""
    content = read_file(files, f"{path}/{CLEAN_SHUTDOWN_FILE}")
    return None if content is None else parse_clean_shutdown(content)


def parse_clean_shutdown(content: Buffer) -> BrokerEpoch | None:
    try:
        data = json.loads(bytes(content))
    except ValueError:
        return None
    if not isinstance(data, dict) or data.get("version", 0) != 0:
        return None
    epoch = data.get("brokerEpoch", data.get("BrokerEpoch"))
    if isinstance(epoch, str) and epoch.removeprefix("-").isdecimal():
        epoch = int(epoch)
    if not isinstance(epoch, int) or isinstance(epoch, bool) or epoch < NO_BROKER_EPOCH:
        return None
    return BrokerEpoch(epoch)


def write_clean_shutdown(files: Files, path: str, broker_epoch: BrokerEpoch, on_durable: OnDurable) -> None:
    """Write the file in place, as Kafka does: an incomplete one is not valid JSON, hence unclean. Raises OSError."""
    file = files.open(f"{path}/{CLEAN_SHUTDOWN_FILE}", create=True)
    file.truncate(0)
    file.append(json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":")).encode())

    def flushed(error: OSError | None) -> None:
        file.close()
        if error is None:
            files.sync_dir(path, on_durable)
        else:
            on_durable(error)

    files.flush(file, flushed)


def remove_clean_shutdown(files: Files, path: str, on_durable: OnDurable) -> None:
    """Raises OSError. Until `on_durable(None)` no log in the directory may change."""
    if files.exists(f"{path}/{CLEAN_SHUTDOWN_FILE}"):
        files.unlink(f"{path}/{CLEAN_SHUTDOWN_FILE}")
    # sync even without a file: the last incarnation may have unlinked it and crashed before its sync
    files.sync_dir(path, on_durable)
