"""Transports in Python: the example, and what goes wrong in others."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from typing import Any, Callable, Optional, Union

import pytest
from helpers import ROOT, command

import trimline
from trimline import Context, Endpoint, Message, Packet

sys.path.insert(0, str(ROOT / "python" / "examples"))
import window  # noqa: E402


def test_the_example_delivers_everything() -> None:
    result = trimline.run(window.scenario(), set={"transport.window": 16})
    assert result.summary["messages"]["completed"] == 8
    assert result.summary["packets"]["dropped"] > 0, "losses are repaired"
    assert result.summary["packets"]["retransmitted"] >= result.summary["packets"]["dropped"]
    assert result.flows.to_pandas()["retransmissions"].sum() > 0
    again = trimline.run(window.scenario(), set={"transport.window": 16}, threads=2)
    assert again.digest == result.digest
    other = trimline.run(window.scenario(), set={"transport.window": 4})
    assert other.digest != result.digest
    # 500 kB from each of eight, with headers, over one link of 10 Gb/s.
    assert other.summary["last_completion_us"] > 8 * 500e3 * 8 / 10e3 * 1460 / 1400


def test_several_run_at_once() -> None:
    alone = trimline.run(window.scenario()).digest
    many = trimline.run_many([window.scenario() for _ in range(4)], threads=4)
    assert {result.digest for result in many} == {alone}


class Blast(Endpoint):
    """Sends one packet of each message, and delivers what comes."""

    def __init__(self, host: int, table: dict[str, Any]) -> None:
        super().__init__(host, table)
        self.waiting: list[Message] = []

    def on_submit(self, cx: Context, msg: Message) -> Optional[bool]:
        self.waiting.append(msg)
        return None

    def poll_tx(self, cx: Context) -> Union[Packet, int, None]:
        if not self.waiting:
            return None
        msg = self.waiting.pop()
        return Packet(msg.dst, msg.id, length=min(msg.length or 0, self.payload))

    def on_packet(self, cx: Context, packet: Packet) -> None:
        cx.place((packet.src, packet.msg), packet.offset, packet.length)
        cx.delivered((packet.src, packet.msg))


def blast(transport: Any, size: str = "1000B") -> trimline.Scenario:
    """Two hosts send `size` to a third."""
    return trimline.Scenario(
        {
            "name": "blast",
            "seed": 3,
            "topology": {"kind": "star", "hosts": 3, "link_rate": "10Gbps", "link_delay": "1us"},
            "queue": {"kind": "drop-tail", "capacity": "30 packets"},
            "routing": {"mode": "random"},
            "transport": {"kind": "custom", "payload": "1400B", "header": "60B"},
            "traffic": {"kind": "incast", "receiver": 0, "senders": 2, "size": size},
            "measure": {"limit": "1ms"},
        },
        transport=transport,
    )


def test_time_draws_and_ways() -> None:
    seen: dict[int, tuple[Any, ...]] = {}

    class Looking(Blast):
        def on_submit(self, cx: Context, msg: Message) -> Optional[bool]:
            draws = (cx.unit("test", 0), cx.below("test", 1, 10))
            ways = (cx.paths(msg.dst), cx.hops(msg.dst), cx.base_rtt(msg.dst))
            seen[cx.me] = (cx.now, cx.hosts, cx.rate, cx.mtu, draws, ways)
            with pytest.raises(KeyError):
                cx.hops((msg.dst + 1) % 3 if (msg.dst + 1) % 3 != cx.me else (msg.dst + 2) % 3)
            assert (msg.length, msg.deadline, msg.priority, msg.channel) == (1000, None, 0, 0)
            return super().on_submit(cx, msg)

    result = trimline.run(blast(Looking))
    assert result.summary["messages"]["completed"] == 2
    first, second = seen[1], seen[2]
    assert first[:4] == (0, 3, 10_000_000_000, 1460)
    assert first[5][:2] == (1, 2) and first[5][2] > 4 * trimline.US
    assert first[4] != second[4], "hosts have draws of their own"
    trimline.run(blast(Looking))
    assert seen[1] == first, "the same seed, the same draws"


def test_pacing_and_tokens() -> None:
    sent: list[tuple[int, int]] = []

    class Paced(Blast):
        def poll_tx(self, cx: Context) -> Union[Packet, int, None]:
            if cx.now < 10 * trimline.US:
                return 10 * trimline.US
            packet = super().poll_tx(cx)
            if isinstance(packet, Packet):
                return Packet(packet.dst, packet.msg, length=packet.length, token=7)
            return packet

        def on_sent(self, cx: Context, token: int, at: int) -> None:
            sent.append((token, at))

    trimline.run(blast(Paced))
    # 1060 bytes take 848 ns at 10 Gb/s; clocks of hosts differ by 100 ppm at most.
    expected = 10 * trimline.US + 848 * trimline.NS
    assert len(sent) == 2
    assert all(token == 7 and abs(at - expected) <= expected // 10_000 for token, at in sent)


def test_an_exception_ends_the_run_with_its_traceback() -> None:
    class Wrong(Blast):
        def on_packet(self, cx: Context, packet: Packet) -> None:
            raise ZeroDivisionError(f"from host {packet.src}")  # raised here

    with pytest.raises(ZeroDivisionError, match="from host [12]") as raised:
        trimline.run(blast(Wrong))
    assert "# raised here" in "".join(traceback.format_tb(raised.value.__traceback__))


Step = Callable[[Context], Any]


@pytest.mark.parametrize(
    ("step", "error", "words"),
    [
        (lambda cx: Packet(9, 0), ValueError, "a packet to host 9, of 3 hosts"),
        (lambda cx: Packet(0, 0, length=1401), ValueError, "1401 bytes of payload, of 1400"),
        (lambda cx: Packet(0, 0, wire_length=30, control=True), ValueError, "30 bytes on the wire"),
        (lambda cx: Packet(0, 0, length=9, wire_length=1461), ValueError, "40 bytes to 1460"),
        (lambda cx: Packet(0, 0, header=bytes(65)), ValueError, "65 bytes, of 64"),
        (lambda cx: Packet(0, 0, traffic_class=8), ValueError, "traffic class 8"),
        (lambda cx: cx.now, ValueError, "poll_tx would send at 0 ps"),
        (lambda cx: "now", TypeError, "a Packet, an int or None"),
        (lambda cx: -1, TypeError, "a Packet, an int or None"),
        (lambda cx: cx.arm(0, -1), OverflowError, "negative"),
        (lambda cx: cx.place((3, 0), 0, 1), ValueError, "message of host 3"),
        (lambda cx: cx.failed((1, 0), "lost"), ValueError, "none of cancelled"),
        (lambda cx: cx.count("hiccup"), ValueError, "none of retransmission"),
        # What no transport may do, the simulator says.
        (lambda cx: cx.place((1, 0), 0, 1), trimline.RunError, "invariant violated"),
        (lambda cx: cx.place((1, 0), 2**63, 2**31), trimline.RunError, "invariant violated"),
        (lambda cx: cx.delivered((1, 0)), trimline.RunError, "invariant violated"),
        (lambda cx: cx.delivered((2, 77)), trimline.RunError, "invariant violated"),
        (lambda cx: cx.acked(77), trimline.RunError, "invariant violated"),
        (lambda cx: cx.acked(0), trimline.RunError, "invariant violated"),
        (lambda cx: cx.failed((0, 77), "refused"), trimline.RunError, "invariant violated"),
        (lambda cx: Packet(cx.me, 0), ValueError, "a packet to itself"),
        (lambda cx: cx.arm(1, cx.now), trimline.RunError, "livelock"),
    ],
)
def test_what_is_wrong_ends_the_run(step: Step, error: type[Exception], words: str) -> None:
    class Wrong(Blast):
        def poll_tx(self, cx: Context) -> Any:
            return step(cx) if self.host == 1 else None

        def on_timer(self, cx: Context, timer: int) -> None:
            step(cx)

    with pytest.raises(error, match=words):
        trimline.run(blast(Wrong))


def test_odd_requests_do_no_harm() -> None:
    class Odd(Blast):
        def poll_tx(self, cx: Context) -> Union[Packet, int, None]:
            cx.count("timeout", 2**63)
            cx.count("retransmission", 77)
            cx.rtt(77, 2**63)
            cx.disarm(2**32 - 1)
            cx.arm(5, 2**64 - 1)
            return super().poll_tx(cx)

    assert trimline.run(blast(Odd)).summary["messages"]["completed"] == 2


def test_a_context_is_good_for_its_call() -> None:
    kept: list[Context] = []

    class Keeping(Blast):
        def on_submit(self, cx: Context, msg: Message) -> Optional[bool]:
            kept.append(cx)
            return super().on_submit(cx, msg)

        def on_packet(self, cx: Context, packet: Packet) -> None:
            next(other for other in kept if other.me != cx.me).acked(0)

    with pytest.raises(RuntimeError, match="good for the call"):
        trimline.run(blast(Keeping))


def test_a_full_endpoint_is_offered_messages_again() -> None:
    class Full(Blast):
        def on_submit(self, cx: Context, msg: Message) -> Optional[bool]:
            return False

    result = trimline.run(blast(Full))
    assert result.summary["messages"]["completed"] == 0


def test_what_makes_endpoints_must_make_them() -> None:
    with pytest.raises(TypeError, match="no trimline.Endpoint"):
        trimline.run(blast(lambda host, table: 7))
    with pytest.raises(NotImplementedError):
        trimline.run(blast(Endpoint))

    def refuse(host: int, table: dict[str, Any]) -> Endpoint:
        raise LookupError(table["payload"], table["header"], table["kind"])

    with pytest.raises(LookupError, match=r"\(1400, 60, 'custom'\)"):
        trimline.run(blast(refuse))


def test_packets_have_a_length_that_links_carry() -> None:
    with pytest.raises(trimline.ScenarioError, match="packets of 130000B"):
        blast(Blast).set("transport.payload", "65000B").set("transport.header", "65000B").check()


def test_a_transport_needs_a_table_that_has_it(tmp_path: Path) -> None:
    ndp = {"kind": "ndp", "preset": "paper", "payload": "1400B", "initial_window": 12}
    with pytest.raises(trimline.ScenarioError, match="the program's own transport has no effect"):
        blast(Blast).set("transport", ndp).check()
    file = tmp_path / "custom.toml"
    file.write_text(blast(Blast).to_toml())
    printed = command("check", str(file))
    assert printed.returncode == 2 and "no program brings a transport here" in printed.stderr
    loaded = trimline.Scenario.load(file, transport=Blast)
    assert trimline.run(loaded).digest == trimline.run(blast(Blast)).digest


def test_its_messages_have_lives() -> None:
    life = trimline.explain(blast(Blast))
    flows = trimline.run(blast(Blast)).flows.to_pylist()
    assert life.fct_ps == max(row["fct_ps"] for row in flows) == sum(life.spent_ps.values())

    class Broken(Blast):
        def on_submit(self, cx: Context, msg: Message) -> Optional[bool]:
            raise LookupError(msg.id)

    with pytest.raises(LookupError):
        trimline.explain(blast(Broken))
