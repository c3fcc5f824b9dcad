#!/bin/sh
# Known vulnerabilities of the locked packages that run with heirlog. In an environment of its own: what audits is not
# part of what is audited. --strict: a package that cannot be looked up is an error, and not silence.
#
# Exit code: 0 none is known, 1 some are, 2 the packages were not checked (pip-audit has 1 for both of the latter).
set -eu
cd "$(dirname "$0")/.."
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

not_checked() {
    cat >&2 <<SENTENCES
make audit: the packages were NOT checked: $1.
It needs the package index, and one of two databases: https://pypi.org (the default) or https://api.osv.dev, with
    make audit ARGS='--vulnerability-service osv'
Behind a proxy, set HTTPS_PROXY. CI runs it for each change. Elsewhere, with internet access and any Python:
    pipx run pip-audit --strict --disable-pip --require-hashes -r requirements/runtime.txt
SENTENCES
    exit 2
}

.venv/bin/python -m venv "$place/venv"
"$place/venv/bin/python" -m pip install --quiet --disable-pip-version-check pip-audit ||
    not_checked "pip-audit cannot be installed"
code=0
"$place/venv/bin/pip-audit" --strict --disable-pip --require-hashes --progress-spinner off -r requirements/runtime.txt \
    --output "$place/report" "$@" || code=$?
if [ "$code" != 0 ] && [ ! -s "$place/report" ]; then
    not_checked "pip-audit ended with $code and has no report; its reason is above"
fi
if [ -f "$place/report" ]; then
    cat "$place/report"
fi
exit "$code"
