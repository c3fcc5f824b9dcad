from __future__ import annotations

import subprocess
import sys

import pytest

from heirlog.protocol.api import APIS, UnknownApi, request_class, response_class

# kafka-behaviour of 4.2: key, versions, first flexible version
EXPECTED = {
    0: (3, 13, 9), 1: (4, 18, 12), 2: (1, 11, 6), 3: (0, 13, 9), 8: (2, 10, 8), 9: (1, 10, 6), 10: (0, 6, 3),
    11: (0, 9, 6), 12: (0, 4, 4), 13: (0, 5, 4), 14: (0, 5, 4), 15: (0, 6, 5), 16: (0, 5, 3), 17: (0, 1, 32767),
    18: (0, 4, 3), 19: (2, 7, 5), 20: (1, 6, 4), 21: (0, 2, 2), 22: (0, 6, 2), 23: (2, 4, 4), 24: (0, 5, 3),
    25: (0, 4, 3), 26: (0, 5, 3), 27: (1, 2, 1), 28: (0, 5, 3), 29: (1, 3, 2),
    30: (1, 3, 2), 31: (1, 3, 2), 32: (1, 4, 4),
    33: (0, 2, 2), 35: (1, 4, 2), 36: (0, 2, 2), 37: (0, 3, 2),
    38: (1, 3, 2), 39: (1, 2, 2), 40: (1, 2, 2), 41: (1, 3, 2), 42: (0, 2, 2), 43: (0, 3, 2), 44: (0, 1, 1),
    45: (0, 1, 0), 46: (0, 0, 0), 47: (0, 0, 32767), 48: (0, 1, 1),
    49: (0, 1, 1), 50: (0, 0, 0), 51: (0, 0, 0), 52: (0, 2, 0), 53: (0, 1, 1), 54: (0, 1, 1), 55: (0, 2, 0),
    56: (2, 3, 0), 57: (0, 2, 0), 58: (0, 0, 0), 59: (0, 1, 0), 60: (0, 2, 0), 61: (0, 0, 0), 62: (0, 4, 0),
    63: (0, 1, 0), 64: (0, 0, 0), 65: (0, 0, 0), 66: (0, 2, 0), 67: (0, 0, 0), 68: (0, 1, 0), 69: (0, 1, 0),
    70: (0, 0, 0), 73: (0, 0, 0), 74: (0, 1, 0), 75: (0, 0, 0),
    76: (1, 1, 0), 77: (1, 1, 0), 78: (1, 2, 0), 79: (1, 2, 0), 80: (0, 1, 0), 81: (0, 0, 0), 82: (0, 0, 0),
    83: (0, 0, 0), 84: (0, 0, 0), 85: (0, 1, 0), 86: (0, 0, 0), 87: (0, 1, 0), 90: (0, 1, 0), 91: (0, 0, 0),
    92: (0, 0, 0),
    # ours
    10093: (0, 0, 0), 10094: (0, 0, 0),
}  # fmt: skip


def test_the_apis_are_those_of_kafka_4_2() -> None:
    for key, (first, last, flexible) in EXPECTED.items():
        api = APIS[key]
        assert (api.min_version, api.max_version) == (first, last), api
        assert max(api.flexible_version, first) == max(flexible, first), api
    assert sorted(APIS) == sorted(EXPECTED)


@pytest.mark.parametrize("key", sorted(APIS))
def test_the_classes_belong_to_their_api(key: int) -> None:
    api = APIS[key]
    for cls, suffix in ((request_class(key), "Request"), (response_class(key), "Response")):
        assert cls.__name__ == api.name + suffix
        assert (key, api.min_version, api.max_version) == (cls.API_KEY, cls.MIN_VERSION, cls.MAX_VERSION)
        assert api.flexible_version == cls.FLEXIBLE_VERSION


def test_an_api_speaks_the_versions_of_its_messages() -> None:
    assert [version for version in range(20) if APIS[0].speaks(version)] == list(range(3, 14))


def test_unknown_keys_are_named() -> None:
    with pytest.raises(UnknownApi, match="key 4 "):
        request_class(4)


def test_importing_the_table_imports_no_message() -> None:
    code = "import sys, heirlog.protocol.frames; print([m for m in sys.modules if '_generated.messages.' in m])"
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": ":".join(sys.path)}
    )
    assert shown.stdout.strip() == "[]"
