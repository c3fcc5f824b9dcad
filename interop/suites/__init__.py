"""Clients' own test suites against heirlog: what passes on Apache Kafka 4.2 has to pass here.

Nothing of the suites is kept in this repository. Their source distributions are fetched by name and hash and unpacked
in .cache/interop; beside their tests go the few files of ours that tell them of a broker that runs already. Kept are
names only:

    <client>.json   what each test came to on Apache Kafka 4.2: `python interop/suites/record.py` writes it anew
    <client>.toml   tests that are not asked of heirlog, and those that say nothing on Apache Kafka, with the reasons

A test that passed on Apache Kafka and has no reason must pass. One with a reason must not: whoever makes it pass takes
the reason away. What fails is run a second time before it counts, since many of these tests wait for a fixed time.
"""
