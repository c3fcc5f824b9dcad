"""Certificates for tests, made once per process: making a key takes milliseconds, and tests need only a few."""

from __future__ import annotations

from functools import cache

from heirlog.local.certificates import Authority

OURS = "test authority"


def authority(name: str = OURS) -> Authority:
    return _authority(name)


@cache
def _authority(name: str) -> Authority:
    return Authority.new(name)


@cache
def issued(name: str, *hosts: str, days: int = 2, by: str = OURS) -> str:
    return authority(by).issue(name, hosts, days)
