"""A delegation token as the metadata knows it: whose it is, who may renew it, until when. Its HMAC is not stored."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DelegationToken:
    """Principals as `Type:Name`, times in milliseconds since 1970."""

    id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_ms: int
    max_ms: int
    """It cannot be renewed beyond."""
    expires_ms: int

    @property
    def ends_ms(self) -> int:
        return min(self.max_ms, self.expires_ms)

    def is_of(self, principal: str) -> bool:
        """Whether the principal may renew and see it."""
        return principal == self.owner or principal in self.renewers
