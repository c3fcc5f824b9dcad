"""How a command fails: one sentence on stderr and an exit code, never a traceback for what a person can mend."""

from __future__ import annotations

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130


class CommandError(Exception):
    """What was refused, why, and what to do next, in one sentence."""

    exit_code = EXIT_FAILED


class UsageError(CommandError):
    """The command line itself is wrong: it fails on every cluster."""

    exit_code = EXIT_USAGE
