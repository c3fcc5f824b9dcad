"""The times of the quorum's protocol, from `controller.quorum.*`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class QuorumConfig:
    election_timeout_ms: int = 1_000
    """controller.quorum.election.timeout.ms. A voter without a leader waits this long, and up to twice as long, before
    it asks for votes, and a candidacy ends after it.
    """
    fetch_timeout_ms: int = 2_000
    """controller.quorum.fetch.timeout.ms. A voter whose leader answers no fetch for this long asks for votes; a leader
    from which no majority fetches for one and a half times as long resigns.
    """
    election_backoff_max_ms: int = 1_000
    """controller.quorum.election.backoff.max.ms. After a leader has resigned, the voter with the longest log asks for
    votes at once, and the others at most this much later.
    """
    request_timeout_ms: int = 2_000
    """controller.quorum.request.timeout.ms. A fetch may take as long as two of its own waits, if that is longer."""
    retry_backoff_ms: int = 20
    """controller.quorum.retry.backoff.ms; of a fetch doubled with each failure in a row up to a second."""
    auto_join: bool = False
    """controller.quorum.auto.join.enable. A controller that is not a voter adds itself."""
