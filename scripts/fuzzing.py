"""Coverage-guided fuzzing of what reads bytes that others wrote (atheris, that is libFuzzer).

    python scripts/fuzzing.py                               every target, a minute in all, half of it a whole node
    python scripts/fuzzing.py --seconds 300 connection      one target, five minutes
    python scripts/fuzzing.py --replay FILE                 what a finding does, with its trace

The targets are in tests/fuzz/targets.py, seeds are made from valid messages, and what was learned is kept in the
corpus directory for the next run. A finding is written to a file whose name begins with its target: replaying it needs
neither atheris nor the corpus. Copy it into tests/fuzz/found, and it is replayed with every `make test`.

Each target runs in a process of its own, since libFuzzer ends the process that it runs in.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INSTRUMENTED = [
    "heirlog.protocol",
    "heirlog.node",
    "heirlog.storage",
    "heirlog.broker",
    "heirlog.raft",
    "heirlog.security",
]
SHARES = {"connection": 5}
"""Of the time; 1 for the others."""
MEMORY_LIMIT_MB = 1024
INPUT_LIMIT_S = 10
INPUT_LIMIT_BYTES = 8192


def main() -> int:
    sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]
    parser = argparse.ArgumentParser(description="Fuzz heirlog, guided by coverage.")
    parser.add_argument("targets", nargs="*", help="default: all of them")
    parser.add_argument("--seconds", type=int, default=60, help="in all (default 60)")
    parser.add_argument("--corpus", type=Path, default=Path(tempfile.gettempdir()) / "heirlog-fuzz")
    parser.add_argument("--findings", type=Path, default=Path.cwd(), help="where findings are written (default: here)")
    parser.add_argument("--replay", type=Path, help="run one finding and nothing else")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.replay is not None:
        return replay(arguments.replay)
    if importlib.util.find_spec("atheris") is None:
        print("no fuzzing: atheris is not installed (it exists for Linux on x86-64 only): pip install atheris")
        return 0
    if arguments.inside:
        fuzz(arguments.inside, arguments.seconds, arguments.corpus, arguments.findings)
    return run_each(arguments)


def run_each(arguments: argparse.Namespace) -> int:
    from fuzz.targets import TARGETS

    unknown = set(arguments.targets) - set(TARGETS)
    if unknown:
        print(f"no such target: {', '.join(sorted(unknown))}; there are {', '.join(TARGETS)}")
        return 2
    failed = []
    chosen = arguments.targets or list(TARGETS)
    whole = sum(SHARES.get(name, 1) for name in chosen)
    for name in chosen:
        seconds = max(1, arguments.seconds * SHARES.get(name, 1) // whole)
        options = [f"--seconds={seconds}", f"--corpus={arguments.corpus}", f"--findings={arguments.findings}"]
        command = [sys.executable, str(Path(__file__)), f"--inside={name}", *options]
        print(f"== {name}", flush=True)
        if subprocess.run(command, check=False).returncode:
            failed.append(name)
    if failed:
        print(f"findings in {', '.join(failed)}: see above; replay with python scripts/fuzzing.py --replay FILE")
        return 1
    print("no findings")
    return 0


def fuzz(name: str, seconds: int, corpus: Path, findings: Path) -> None:
    """Never returns: libFuzzer ends the process."""
    import atheris

    with atheris.instrument_imports(include=INSTRUMENTED):
        from fuzz.findings import inputs_of, save
        from fuzz.seeds import seeds
        from fuzz.targets import TARGETS

    directory = corpus / name
    directory.mkdir(parents=True, exist_ok=True)
    for data in seeds(name):
        (directory / hashlib.sha256(data).hexdigest()[:20]).write_bytes(data)
    findings.mkdir(parents=True, exist_ok=True)
    target = TARGETS[name]

    def one(data: bytes) -> None:
        try:
            target(data)
        except Exception:
            print(f"FINDING: {save(findings, name, inputs_of(name, data))}", flush=True)
            raise

    atheris.Setup(
        [
            sys.argv[0],
            str(directory),
            f"-max_total_time={seconds}",
            f"-rss_limit_mb={MEMORY_LIMIT_MB}",
            f"-timeout={INPUT_LIMIT_S}",
            f"-max_len={INPUT_LIMIT_BYTES}",
            f"-artifact_prefix={findings}/{name}-",
            "-print_final_stats=1",
            "-verbosity=0",
        ],
        one,
    )
    atheris.Fuzz()


def replay(path: Path) -> int:
    from fuzz.findings import run

    run(path)
    print(f"{path} does no harm (any more)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
