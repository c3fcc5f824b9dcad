#!/bin/sh
# Known vulnerabilities of the locked packages that run with heirlog. In an environment of its own: what audits is not
# part of what is audited. --strict: a package that cannot be looked up is an error, and not silence.
set -eu
cd "$(dirname "$0")/.."
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
.venv/bin/python -m venv "$place"
"$place/bin/python" -m pip install --quiet --disable-pip-version-check pip-audit
"$place/bin/pip-audit" --strict --disable-pip --require-hashes -r requirements/runtime.txt
