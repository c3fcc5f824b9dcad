"""Java's regular expressions, translated to Python's: `subscribePattern` as Spark's own source understands it.

Most syntax is the same. What Python writes differently is translated. What Python does not have is refused, and so is a
character class in a character class, which Python would read as other characters.

    \\Q...\\E          what stands between, literally
    (?<name>...)     a named group, and \\k<name> the same text once more
    \\h              a space or tab
    \\z, \\Z          the end: names of topics hold no line break, before which \\Z would match as well
"""

from __future__ import annotations

import re
import warnings

# an escaped character is skipped as a whole, so that the Q of \\Q is not that of \Q
_OTHERWISE = re.compile(r"\\Q(.*?)(?:\\E|$)|\(\?<([A-Za-z]\w*)>|\\k<(\w+)>|(\\[hzZ])|\\.", re.DOTALL)
_ESCAPES = {r"\h": r"[ \t]", r"\z": r"\Z", r"\Z": r"\Z"}


def compiled(pattern: str) -> re.Pattern[str]:
    """Raises re.error, OverflowError, RecursionError."""
    with warnings.catch_warnings():
        # Python warns about sets in sets, which it may support one day and reads as characters until then
        warnings.simplefilter("error", FutureWarning)
        try:
            return re.compile(_OTHERWISE.sub(_translated, pattern))
        except FutureWarning as warning:
            raise re.error(f"a character class in a character class ({warning})") from warning


def _translated(found: re.Match[str]) -> str:
    literal, group, again, escape = found.groups()
    if literal is not None:
        return re.escape(literal)
    if group is not None:
        return f"(?P<{group}>"
    if again is not None:
        return f"(?P={again})"
    return _ESCAPES.get(escape, found[0])
