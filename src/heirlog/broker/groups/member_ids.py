"""The id that a coordinator gives a member of the classic protocol: the client's or the instance's id, and a UUID."""

from __future__ import annotations

from binascii import hexlify
from typing import Final

from heirlog.env import Env

KNOWN_ID_VERSION: Final = 4
"""JoinGroup: a new member has to come back with its id."""
MEMBER_ID_PREFIX_CHARACTERS: Final = 255
"""Limit of the client or instance id at the start of a member id. A longer one is cut: there may be many member ids,
and older responses have no room for more than 32,767 bytes.
"""


def new_member_id(env: Env, prefix: str) -> str:
    text = hexlify(env.random.randbytes(16)).decode()
    uuid = "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
    return f"{prefix[:MEMBER_ID_PREFIX_CHARACTERS]}-{uuid}"
