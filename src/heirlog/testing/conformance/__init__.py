"""Floor 9: scenario files of KIP-966, 903 and 460, played on the product's own controller, partitions and admin code.

    python -m heirlog.testing.conformance FILE... [--layer L] [--id ID] [--json]

A scenario is a setup and steps of {event, expect}. Nothing here decides anything: a setup becomes metadata records or a
log, an event becomes a request or a call, and what is observed is read from answers, appended records and images.

`elr-scenarios.json` is the catalogue that `make test` plays. `deviations.toml` holds, for the few scenarios whose
recorded outcome heirlog departs from on purpose, what is expected instead.
"""
