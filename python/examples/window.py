"""A transport in Python: a fixed window of packets, an acknowledgement for each, one timeout.

python python/examples/window.py
"""

from __future__ import annotations

import struct
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Optional, Union

import trimline
from trimline import US, Context, Endpoint, Message, Packet

#: The header of a data packet: how long its message is.
LENGTH = struct.Struct(">Q")


@dataclass
class Sending:
    """A message of this host that is not acknowledged."""

    dst: int
    length: int
    next: int = 0
    #: Payload bytes in flight by their offset.
    in_flight: dict[int, int] = field(default_factory=dict)
    #: Offsets to be sent again.
    lost: deque[int] = field(default_factory=deque)


class Window(Endpoint):
    """Its keys: `window`, packets of a message in flight; `rto_us`, after which they are lost."""

    def __init__(self, host: int, table: dict[str, Any]) -> None:
        super().__init__(host, table)
        self.window: int = table["window"]
        self.rto: int = table["rto_us"] * US
        self.sending: dict[int, Sending] = {}
        #: By key, the offsets that have come of messages that are not whole.
        self.receiving: dict[tuple[int, int], set[int]] = {}
        self.whole: set[tuple[int, int]] = set()
        self.acks: deque[Packet] = deque()

    def on_submit(self, cx: Context, msg: Message) -> Optional[bool]:
        if msg.length is None:
            raise ValueError("this transport carries no message without an end")
        self.sending[msg.id] = Sending(msg.dst, msg.length)
        return True

    def poll_tx(self, cx: Context) -> Union[Packet, int, None]:
        if self.acks:
            return self.acks.popleft()
        for id, message in self.sending.items():
            if message.lost:
                cx.count("retransmission", id)
                return self.data(cx, id, message, message.lost.popleft())
            is_begun = message.next > 0 or message.in_flight
            has_more = message.next < message.length or not is_begun
            if has_more and len(message.in_flight) < self.window:
                offset = message.next
                message.next = min(offset + self.payload, message.length)
                return self.data(cx, id, message, offset)
        return None

    def data(self, cx: Context, id: int, message: Sending, offset: int) -> Packet:
        length = min(self.payload, message.length - offset)
        message.in_flight[offset] = length
        cx.arm(id, cx.now + self.rto)
        header = LENGTH.pack(message.length)
        return Packet(message.dst, id, offset=offset, length=length, header=header)

    def on_packet(self, cx: Context, packet: Packet) -> None:
        if packet.control:
            self.on_ack(cx, packet)
            return
        if packet.trimmed or packet.bounced:
            return
        key = (packet.src, packet.msg)
        self.acks.append(Packet(packet.src, packet.msg, offset=packet.offset, control=True))
        offsets = self.receiving.setdefault(key, set())
        if key in self.whole or packet.offset in offsets:
            cx.count("duplicate")
            return
        offsets.add(packet.offset)
        cx.place(key, packet.offset, packet.length)
        (length,) = LENGTH.unpack(packet.header)
        if len(offsets) * self.payload >= length:
            self.whole.add(key)
            del self.receiving[key]
            cx.delivered(key)

    def on_ack(self, cx: Context, packet: Packet) -> None:
        message = self.sending.get(packet.msg)
        if message is None:
            return
        message.in_flight.pop(packet.offset, None)
        if packet.offset in message.lost:
            message.lost.remove(packet.offset)
        if not message.in_flight and not message.lost and message.next == message.length:
            del self.sending[packet.msg]
            cx.disarm(packet.msg)
            cx.acked(packet.msg)

    def on_timer(self, cx: Context, timer: int) -> None:
        message = self.sending[timer]
        cx.count("timeout", timer)
        message.lost.extend(message.in_flight)
        message.in_flight.clear()

    def on_cancel(self, cx: Context, msg: int) -> None:
        if self.sending.pop(msg, None) is not None:
            cx.disarm(msg)
            cx.failed((cx.me, msg), "cancelled")


def scenario() -> trimline.Scenario:
    """Eight senders to one receiver, over a switch with a short queue."""
    return trimline.Scenario(
        {
            "name": "a window in Python",
            "seed": 1,
            "topology": {"kind": "star", "hosts": 9, "link_rate": "10Gbps", "link_delay": "1us"},
            "queue": {"kind": "drop-tail", "capacity": "30 packets"},
            "routing": {"mode": "random"},
            "transport": {
                "kind": "custom",
                "payload": "1400B",
                "header": "60B",
                "window": 8,
                "rto_us": 1000,
            },
            "traffic": {"kind": "incast", "receiver": 0, "senders": 8, "size": "500KB"},
        },
        transport=Window,
    )


if __name__ == "__main__":
    for window in [2, 4, 8, 16]:
        result = trimline.run(scenario(), set={"transport.window": window})
        last = result.summary["last_completion_us"]
        packets = result.summary["packets"]
        print(
            f"window {window:2}: last of 8 messages after {last:6.0f} us,"
            f" {packets['dropped']} packets dropped"
        )
