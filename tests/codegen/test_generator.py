from __future__ import annotations

from codegen.codec import snake
from codegen.generator import GENERATED, SPECS, generate, unaccounted


def test_generating_again_changes_nothing() -> None:
    files = generate(SPECS)
    changed = [name for name, text in files.items() if (GENERATED / name).read_text(encoding="utf-8") != text]
    assert not changed, "run `python tools/codegen`"
    assert not unaccounted(files)


def test_names_become_snake_case_as_kio_has_it() -> None:
    assert snake("KRaftVersionFeature") == "k_raft_version_feature"
    assert snake("Isr") == "isr"
    assert snake("LastKnownElr") == "last_known_elr"
