"""Floor 9: scenario files of KIP-966, 903 and 460, played on the product's own controller, partitions and admin code.

    python -m heirlog.testing.conformance FILE... [--layer L] [--id ID] [--json]

A scenario is a setup and steps of {event, expect}. This package decides nothing: a setup becomes metadata records or a
log, an event becomes a request or a call, and the observed values are read from answers, appended records and images.

`elr-scenarios.json` is the catalogue that `make test` plays. For the few scenarios in which heirlog differs on purpose
from the recorded outcome, `deviations.toml` has the expected values.
"""
