"""How the client core asks without doing I/O: its calls are generators, and a driver carries out what they yield.

    Conversation --Ask--> Cluster --Send, SendAll, Pause--> driver --answer, or an exception--> ... --> the result

* A `Conversation` knows what to ask and what an answer means, and names servers by their role only: "any broker",
  "the controller". The calls of `admin.py` are conversations. They need no cluster, so they are tested without one.
* A `Call` knows which server that is now, what is asked again, after which pause and for how long. `Cluster` makes a
  call from a conversation, and has calls of its own.
* A driver has sockets (`heirlog.blocking`) or a simulated network (`heirlog.sim`), and decides nothing. It carries out
  one effect, sends the result into the generator, and receives the next effect, until StopIteration brings the result:

      Send      -> the response. Without one the driver throws an OSError into the generator: TimeoutError (no answer
                   in time), ConnectionError (refused, closed, reset), or Unsupported (no common version of this API).
                   A server that does not believe who we are is AuthenticationFailed, which no call catches.
      SendAll   -> a list with a response or an OSError for each request, in the order of the requests.
      Pause     -> None.

A driver that gives up a call closes the generator. What a call was waiting for may still be executed by a server.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol, TypeAlias, TypeVar

from heirlog.protocol.errors import KafkaError
from heirlog.protocol.primitives import Message
from heirlog.protocol.types import Endpoint

R = TypeVar("R")

# what a driver carries out


@dataclass(slots=True)
class Send:
    """One request to one server.

    Never changed. It is not frozen because one is made per request and freezing costs a microsecond.
    """

    to: Endpoint
    message: Message
    timeout_s: float
    """For connecting, sending and the answer together."""
    newest: int | None = None
    """The newest version to use; None: the newest that both sides know."""


@dataclass(frozen=True, slots=True)
class SendAll:
    """Several requests at the same time, each to another server."""

    sends: Sequence[Send]


@dataclass(frozen=True, slots=True)
class Pause:
    seconds: float


Effect: TypeAlias = Send | SendAll | Pause
Call: TypeAlias = Generator[Effect, Any, R]


class Clock(Protocol):
    """Time and chance, which a driver gives to the core."""

    def now_s(self) -> float:
        """Monotonic, in seconds."""

    def random(self) -> float:
        """At least 0 and below 1."""


# what a conversation asks


class To(Enum):
    ANY = "any broker"
    CONTROLLER = "the controller"


@dataclass(frozen=True, slots=True)
class Ask:
    message: Message
    to: To = To.ANY
    failure: KafkaError | None = None
    """Why it is asked again, after a pause and of another broker if any will do; raised when there is no time left."""


Conversation: TypeAlias = Generator[Ask, Any, R]
