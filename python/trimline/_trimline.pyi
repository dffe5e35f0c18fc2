"""The native part. Of it only what `trimline` names is for users."""

import os
from collections.abc import Callable
from typing import Any, Literal, Optional, final

from ._places import Place
from ._scenario import Transport as Factory

__all__ = [
    "Context",
    "Document",
    "Message",
    "Packet",
    "RunError",
    "ScenarioError",
    "Stop",
    "Transport",
    "explain",
    "main",
    "run",
    "version",
]

class ScenarioError(ValueError):
    """What is wrong with a scenario, where it is written, and what would be right.

    The message is that of the command line. A scenario built in Python has the line in Python.
    """

    file: Optional[str]
    line: Optional[int]
    column: Optional[int]

class RunError(RuntimeError):
    """A run that failed: an invariant was violated, a disk is full, it was stopped."""

@final
class Message:
    """A message that an application hands over."""

    @property
    def id(self) -> int:
        """The submitting host's counter."""
    @property
    def dst(self) -> int:
        """The receiving host."""
    @property
    def length(self) -> Optional[int]:
        """Bytes; `None`: it never ends."""
    @property
    def channel(self) -> int:
        """Messages of one non-zero channel between two hosts are delivered in order."""
    @property
    def priority(self) -> int:
        """Application priority, zero the most urgent."""
    @property
    def deadline(self) -> Optional[int]:
        """Picoseconds from submission until all of it should be there."""

@final
class Packet:
    """A packet that has arrived, or one to be sent. It cannot be changed."""

    def __new__(
        cls,
        dst: int,
        msg: int,
        *,
        offset: int = 0,
        length: int = 0,
        header: bytes | None = None,
        control: bool = False,
        ecn: bool = False,
        traffic_class: int = 0,
        path: int = 0,
        token: int = 0,
        wire_length: int = 0,
    ) -> Packet:
        """A packet to `dst` about message `msg`: of data, a message of this host; of control, the
        one that it answers. It carries `length` bytes of it from `offset`, unless it is `control`.

        `header` is the transport's own, 64 bytes at most. Without `wire_length` a packet is as long
        as its payload and `transport.header`, which is also the length of a control packet. `path`
        is used where senders choose paths, else switches hash it. `ecn`: congestion may be marked.
        With a `token` that is not zero `on_sent` tells when it has left.
        """
    @property
    def src(self) -> int:
        """The sending host."""
    @property
    def dst(self) -> int:
        """The receiving host."""
    @property
    def msg(self) -> int:
        """The message that it is about."""
    @property
    def offset(self) -> int:
        """Position of its payload in the message."""
    @property
    def length(self) -> int:
        """Bytes of payload; kept when the payload is trimmed away."""
    @property
    def wire_length(self) -> int:
        """Bytes on the wire, every header included."""
    @property
    def path(self) -> int:
        """The path, where the sender chooses it."""
    @property
    def traffic_class(self) -> int:
        """For priority queues and PFC, 0 to 7. Zero is the lowest."""
    @property
    def header(self) -> bytes:
        """The transport's own header."""
    @property
    def control(self) -> bool:
        """It carries no payload by nature."""
    @property
    def trimmed(self) -> bool:
        """A switch has cut off its payload."""
    @property
    def bounced(self) -> bool:
        """Its header has been sent back: source and destination are swapped."""
    @property
    def ecn_marked(self) -> bool:
        """A switch has marked congestion."""

@final
class Context:
    """Time, draws and effects of one call. A message is known by its key: source and id."""

    @property
    def now(self) -> int:
        """The time of this call, picoseconds."""
    @property
    def me(self) -> int:
        """This host."""
    @property
    def hosts(self) -> int:
        """Hosts of the fabric, 0 to `hosts - 1`."""
    @property
    def rate(self) -> int:
        """Bits per second of this host's link."""
    @property
    def mtu(self) -> int:
        """The longest packet that every link carries, bytes on the wire."""
    def paths(self, host: int) -> int:
        """Paths to `host`, to or from which a message has been seen."""
    def hops(self, host: int) -> int:
        """Links on the way to `host`."""
    def base_rtt(self, host: int) -> int:
        """Picoseconds for a full packet to `host` and a short one back, nothing else on the way."""
    def unit(self, purpose: str, n: int) -> float:
        """The `n`-th draw for `purpose`, uniform in [0, 1): a function of the seed and the host."""
    def below(self, purpose: str, n: int, bound: int) -> int:
        """The `n`-th draw for `purpose`, uniform in 0 to `bound - 1`."""
    def arm(self, timer: int, at: int) -> None:
        """Call `on_timer(timer)` at `at`, and not at an earlier deadline of this timer."""
    def disarm(self, timer: int) -> None:
        """Do not call `on_timer(timer)`."""
    def place(self, key: tuple[int, int], offset: int, length: int) -> None:
        """These bytes of message `key` have come. No byte twice."""
    def delivered(self, key: tuple[int, int]) -> None:
        """Message `key` to this host is whole. Once."""
    def acked(self, id: int) -> None:
        """This host's message `id` is known to be delivered."""
    def failed(
        self, key: tuple[int, int], why: Literal["cancelled", "timed_out", "refused"]
    ) -> None:
        """Message `key` will not complete."""
    def count(
        self,
        what: Literal[
            "retransmission", "timeout", "fast_retransmit", "duplicate", "rejected", "host_drop"
        ],
        id: Optional[int] = None,
    ) -> None:
        """Count it once, for this host's message `id` if that is known."""
    def rtt(self, id: int, rtt: int) -> None:
        """Report a round-trip sample of this host's message `id`, picoseconds."""

@final
class Document:
    @staticmethod
    def load(path: str | os.PathLike[str]) -> Document: ...
    @staticmethod
    def build(tree: dict[str, Any], place: Place) -> Document: ...
    def put(self, path: str, value: Any, place: Place) -> None: ...
    def copy(self) -> Document: ...
    def to_toml(self) -> str: ...
    def check(
        self, transport: Optional[Transport]
    ) -> tuple[str, list[tuple[str, str]], list[str]]: ...
    def check_sweep(self, file: os.PathLike[str]) -> None: ...

@final
class Transport:
    def __new__(cls, factory: Factory) -> Transport: ...

@final
class Stop:
    def __new__(cls) -> Stop: ...
    def set(self) -> None: ...

def run(
    document: Document,
    out: os.PathLike[str],
    *,
    is_kept: bool,
    again: Optional[str],
    threads: Optional[int],
    traces: list[str],
    stop: Stop,
    transport: Optional[Transport],
    progress: Optional[Callable[[float], None]],
) -> None: ...
def explain(document: Document, message: str, transport: Optional[Transport]) -> str: ...
def main(program: list[str], args: list[str]) -> int: ...
def version() -> str:
    """Version, commit and engine."""
