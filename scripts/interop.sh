#!/bin/sh
# Checks against Apache Kafka itself: its schemas, its classes, its tools, and clients of other languages. Arguments:
# words that the names of the wanted checks contain. With STRICT=1 (continuous integration) a check that cannot run
# here counts as failed.
set -eu
cd "$(dirname "$0")/.."
# one of the clients is a Debian package; who is not root installs it by hand
if ! command -v kcat >/dev/null 2>&1 && command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ] && [ "${STRICT:-}" = 1 ]; then
    (apt-get install -y -q kcat || { apt-get update -q && apt-get install -y -q kcat; }) >/dev/null 2>&1 || true
fi
exec .venv/bin/python interop/run.py "$@"
