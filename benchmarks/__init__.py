"""Measurements of real clusters under a real client (librdkafka): `make bench`.

Medians of several runs, broker CPU beside wall time, ratios only within one run. No test depends on a number of these.
"""
