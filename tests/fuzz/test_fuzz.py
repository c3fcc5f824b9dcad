"""Random and half-valid bytes against everything that reads them; what fuzzers have found stays found.

The coverage-guided fuzzer of `scripts/fuzzing.py` runs the same targets for longer.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from fuzz import findings, plausible
from fuzz.brain import Finding, joined, split
from fuzz.seeds import seeds
from fuzz.targets import HISTORIES, HISTORY, TARGETS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parents[2]
FOUND = sorted(Path(__file__).parent.joinpath("found").iterdir())
RELAXED = settings(deadline=None, suppress_health_check=list(HealthCheck), derandomize=False)


def mutated(data: st.DataObject, valid: bytes) -> bytes:
    """A few bytes of something valid changed, cut or inserted."""
    bytes_ = bytearray(valid)
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, max(0, len(bytes_) - 1)))
        match data.draw(st.integers(0, 3)):
            case 0:
                bytes_[at : at + 1] = data.draw(st.binary(min_size=1, max_size=1))
            case 1:
                bytes_[at : at + 4] = data.draw(
                    st.sampled_from([b"\xff" * 4, b"\x7f\xff\xff\xff", b"\x80\0\0\0", bytes(4)])
                )
            case 2:
                del bytes_[at : at + data.draw(st.integers(1, 8))]
            case 3:
                bytes_[at:at] = data.draw(st.binary(max_size=8))
    return bytes(bytes_)


@pytest.mark.parametrize("path", FOUND, ids=[path.name for path in FOUND])
def test_what_was_found_once_does_no_harm_any_more(path: Path) -> None:
    findings.run(path)


def feed(data: bytes, target: str = "connection") -> None:
    """To a node that has had others: a failure leaves a file with all of them."""
    try:
        TARGETS[target](data)
    except Exception as error:
        path = findings.save(ROOT / ".hypothesis" / "found", target, findings.inputs_of(target, data))
        error.add_note(f"replay it with: python scripts/fuzzing.py --replay {path}")
        findings.forget()
        raise


@settings(RELAXED, max_examples=40)
@given(st.integers(0, 2**32), st.data())
def test_a_node_answers_or_closes_whatever_is_done_to_valid_requests(seed: int, data: st.DataObject) -> None:
    flags, frames = split(plausible.conversation(random.Random(seed), HISTORY.brain, 8))
    feed(joined(flags, [mutated(data, frame) for frame in frames]))


def test_a_request_can_be_made_of_every_api_in_every_version() -> None:
    made = [name for name, _ in plausible.seeds()]
    assert len(set(made)) == len(made) > len(plausible.cases())


@settings(RELAXED, max_examples=30)
@given(st.binary(max_size=300), st.integers(0, 1))
def test_a_node_answers_or_closes_random_bytes(frame: bytes, listener: int) -> None:
    feed(joined(listener, [frame]))


@pytest.mark.parametrize("target", [name for name in TARGETS if name != "connection"])
def test_damaged_input_raises_only_what_its_reader_expects(target: str) -> None:
    valid = list(seeds(target))

    @settings(RELAXED, max_examples=80)
    @given(st.integers(0, len(valid) - 1), st.data())
    def look(index: int, data: st.DataObject) -> None:
        feed(mutated(data, valid[index]), target)

    look()


def test_what_fuzzers_begin_with_logs_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise they would only find the way to a closed door."""
    history = HISTORIES["sasl"]
    by = []
    for data in seeds("sasl"):
        client: Any = history.brain.feed(data).client
        by.append(client._authenticated_by)
    assert by.count("PLAIN") == by.count("SCRAM-SHA-256") == by.count("OAUTHBEARER") == 9 and by.count("") == 1


def test_a_finding_is_a_file_that_leads_there_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def target(data: bytes) -> None:
        seen.append(data)
        if seen[-2:] == [b"one", b"two"]:
            raise Finding("two after one")

    seen: list[bytes] = []
    monkeypatch.setitem(TARGETS, "connection", target)
    path = findings.save(tmp_path, "connection", [b"one", b"two"])
    with pytest.raises(Finding):
        findings.run(path)
    assert seen == [b"two", b"one", b"two"]
