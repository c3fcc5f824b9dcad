#!/bin/sh
# Renews requirements/*.txt from pyproject.toml and requirements/*.in. Needs uv; the result needs only pip.
set -eu
cd "$(dirname "$0")/.."
compile() {
    uv pip compile --quiet --generate-hashes --universal --python-version 3.11 --no-header --no-annotate "$@"
}
compile --extra drill --extra oauth --extra tls pyproject.toml requirements/build.in -o requirements/runtime.txt
compile --extra schemas --extra spark pyproject.toml requirements/runtime.txt requirements/dev.in -o requirements/dev.txt
compile requirements/confluent-kafka-2.5.0.in -o requirements/confluent-kafka-2.5.0.txt
compile requirements/docs.in -o requirements/docs.txt
compile requirements/packaging.in -o requirements/packaging.txt
# of one version with the tests: the check imports both
compile --constraints requirements/dev.txt requirements/notebook.in -o requirements/notebook.txt
