"""What the files of a node leave open: lines of the log at the start and after a SIGHUP. Nothing is refused for it.

secret-readable-by-all   every user of the machine can read a file with a private key or a password
anonymous-super-user     some listeners ask who a client is, and a client that takes another one may do everything
metrics-open-to-all      some listeners ask who a client is, and the metrics, which do not, are served to other machines
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from heirlog.context import ANONYMOUS
from heirlog.env import EventLog
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.listener_security import ListenerSecurity, is_secret

_KEYS: Final = "ssl.keystore.location"
_PAGE: Final = "docs/guides/tls-and-sasl.md"


def look(config: StaticConfig, config_file: str, log: EventLog) -> None:
    """config_file: where `config` was read; empty: nowhere."""
    for path in sorted(set(_with_secrets(config, config_file))):
        # a file that is not there is named where it is needed
        with suppress(OSError):
            mode = stat.S_IMODE(os.stat(path).st_mode)
            if mode & stat.S_IROTH:
                why = f"let only the user of the node read it: chmod 600 ({_PAGE})"
                log("warning", "secret-readable-by-all", file=path, mode=f"{mode:04o}", why=why)
    securities = [config.security(listener.name) for listener in config.all_listeners]
    without_name = sorted(security.listener for security in securities if _takes_anybody(security))
    is_closed = any(security.protocol != "PLAINTEXT" for security in securities)
    if config.has_authorizer and ANONYMOUS in config.super_users and is_closed and without_name:
        why = f"remove {ANONYMOUS} from super.users, or let only nodes reach these listeners ({_PAGE})"
        log("warning", "anonymous-super-user", listeners=without_name, why=why)
    metrics = config.metrics_listener
    if metrics is not None and is_closed and not _is_this_machine(metrics.host):
        why = f"serve them on 127.0.0.1, or let only the machine of Prometheus reach this address ({_PAGE})"
        log("warning", "metrics-open-to-all", address=str(metrics), why=why)


def _with_secrets(config: StaticConfig, config_file: str) -> Iterator[str]:
    if config_file and any(text and is_secret(name) for name, text in config.given.items()):
        yield config_file
    for listener in config.all_listeners:
        security = config.security(listener.name)
        path = security.properties.get(_KEYS)
        if path and security.uses_tls:
            yield path


def _is_this_machine(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")


def _takes_anybody(security: ListenerSecurity) -> bool:
    """Whether a client need not say who it is."""
    return not security.uses_sasl and not (security.uses_tls and security.value("ssl.client.auth") == "required")
