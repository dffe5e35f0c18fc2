"""Transports written in Python."""

from __future__ import annotations

from typing import Any, Optional, Union

from ._trimline import Context, Message, Packet

#: Times are whole picoseconds.
PS = 1
NS = 1_000
US = 1_000_000
MS = 1_000_000_000
SEC = 1_000_000_000_000


class Endpoint:
    """One host's whole transport: all its messages, both directions.

    A scenario has it with `transport.kind = "custom"`, by `Scenario(..., transport=MyTransport)`.
    It has no clock and no random numbers but those of the context that comes with each call. What
    it wants done it says to that context. When the host's link is free, `poll_tx` chooses what to
    send. `crates/endpoint/src/transport.rs` has the contract.

    For prototypes: a packet costs microseconds instead of a fraction of one (`docs/python.md`).
    """

    def __init__(self, host: int, table: dict[str, Any]) -> None:
        """For `host`. `table` is `[transport]`; `payload` and `header` are bytes in it."""
        self.host = host
        self.payload: int = table["payload"]
        self.header: int = table["header"]

    def on_submit(self, cx: Context, msg: Message) -> Optional[bool]:
        """The application hands over a message. `False`: no room, it is to be offered again."""
        raise self._lacks("on_submit")

    def on_packet(self, cx: Context, packet: Packet) -> None:
        """A packet for this host has arrived."""
        raise self._lacks("on_packet")

    def on_timer(self, cx: Context, timer: int) -> None:
        """The deadline of `timer` has come."""
        raise self._lacks("on_timer")

    def poll_tx(self, cx: Context) -> Union[Packet, int, None]:
        """The host's link is free: the packet that it sends now; the instant before which it sends
        none; or `None` until something else happens at this host."""
        raise self._lacks("poll_tx")

    def _lacks(self, method: str) -> NotImplementedError:
        return NotImplementedError(f"{type(self).__name__} needs the method `{method}`")

    def on_cancel(self, cx: Context, msg: int) -> None:
        """The application no longer wants its message `msg` delivered."""

    def on_sent(self, cx: Context, token: int, at: int) -> None:
        """A packet whose token is not zero has left; `at` is the end of its serialisation."""
