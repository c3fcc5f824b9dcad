#!/bin/sh
# heirlog and Apache Kafka in one run (arguments: --quick, --rounds N). Its jars are those of `make interop`.
set -eu
cd "$(dirname "$0")/.."
if ! jars=$(.venv/bin/python interop/jars.py); then
    echo "bench-kafka: skipped: $jars"
    exit 0
fi
exec .venv/bin/python -m benchmarks.compare --jars "$jars" "$@"
