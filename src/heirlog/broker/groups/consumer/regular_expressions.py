"""Topics by regular expression: the syntax is that of RE2, and the coordinator looks the topics up.

    a member brings a new expression --> compiled once, to refuse a bad one --> known, matches nothing yet
    some heartbeat of the group      --> all expressions of the group are matched with all topics, in slices
    the topics are found             --> stored; the group epoch rises if they differ

RE2 has no look-around and no back-references. In return its time grows only with the length of the name times the size
of the compiled expression, and its memory has a bound. The complete name must match. Internal topics are not left out.

Two traps. What a group of the expression matched is never asked for: with 1600 groups that took a second per topic.
And where the automaton of an expression needs more memory than it may have, RE2 takes milliseconds for each topic. So a
step of a lookup is measured by that work, not by the number of topics.

A lookup is due when the group has expressions that were never resolved, or lost some, or a topic was created since the
last lookup, or the last lookup is ten minutes old; and never twice within ten seconds. Topics that a member may not
describe are left out: the client whose heartbeat starts the lookup decides that for the group.

Source: KIP-848; KIP-1101 and KAFKA-18813 (ACLs), KAFKA-18961 (which topics cause a lookup).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from heirlog.metadata.survey import AT_A_TIME, Survey
from heirlog.protocol.errors import ErrorCode, KafkaError

REFRESH_MIN_MS = 10_000
REFRESH_INTERVAL_MS = 600_000
"""group.consumer.regex.refresh.interval.ms, an internal configuration of Kafka."""
PATTERN_MAX_BYTES = 1 << 20
"""Memory of one compiled expression. A larger one is refused."""
PATTERN_MAX_CHARACTERS = 8191
WORK_AT_A_TIME = 1_000_000
"""Between two pauses: instructions of compiled expressions times characters of names, of which RE2 does at least so
many in a millisecond."""
WORK_PER_NAME = WORK_AT_A_TIME // AT_A_TIME
"""In addition, for what each call takes."""


def compiled(regex: str) -> Any:
    """Raises KafkaError with INVALID_REGULAR_EXPRESSION."""
    if len(regex) > PATTERN_MAX_CHARACTERS:
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"the regular expression has {len(regex)} characters; shorten it to {PATTERN_MAX_CHARACTERS}",
        )
    import re2  # a library that most coordinators never need

    options = re2.Options()
    options.max_mem = PATTERN_MAX_BYTES
    options.log_errors = False
    options.never_capture = True
    try:
        return re2.compile(regex, options)
    except re2.error as error:
        why = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else str(error)
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression of RE2: {why}",
        ) from error


def matches(
    regexes: Collection[str], names: Iterable[str], refuses: Callable[[str], bool] | None
) -> Survey[Mapping[str, frozenset[str]]]:
    """The topics of each expression, of those that `refuses` does not refuse. Bad expressions match nothing."""
    topics, found, work = list(names), {}, 0
    for regex in regexes:
        # one at a time: each may need its bound of memory
        try:
            pattern = compiled(regex)
        except KafkaError:
            # another implementation accepted it
            found[regex] = frozenset[str]()
            continue
        yield
        matching = []
        for name in topics:
            if pattern.fullmatch(name) is not None and (refuses is None or not refuses(name)):
                matching.append(name)
            work += WORK_PER_NAME + pattern.programsize * len(name)
            while work >= WORK_AT_A_TIME:
                work -= WORK_AT_A_TIME
                yield
        found[regex] = frozenset(matching)
    return found
