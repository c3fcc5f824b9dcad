from __future__ import annotations

from importlib.resources import files

from heirlog.protocol.codegen import snake
from heirlog.protocol.generator import generate


def test_the_committed_files_are_what_the_specs_say() -> None:
    package = files("heirlog.protocol")
    generated = generate(package / "specs")
    for path, text in generated.items():
        assert (package / path).read_text() == text, f"{path}: run python -m heirlog.protocol.generator"
    for folder in ("messages", "records"):
        there = {f"{folder}/{file.name}" for file in (package / folder).iterdir() if file.name.endswith(".py")}
        assert there <= generated.keys()


def test_names_become_snake_case_as_kio_has_it() -> None:
    assert snake("KRaftVersionFeature") == "k_raft_version_feature"
    assert snake("Isr") == "isr"
    assert snake("LastKnownElr") == "last_known_elr"
