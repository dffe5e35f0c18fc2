"""Packets of NDP come to a port faster than they leave, until some are trimmed; then all leave, and
the port is empty. Ports: ../PORTS.md."""

import cocotb
from cocotb.triggers import FallingEdge, Timer
from design import start

# Cycles from a packet to its decision.
DECIDING = @DECIDING@
# Packets, their bytes, and cycles from one to the next.
PACKETS = 40
LENGTH = 9000
APART = 10
# Cycles in which one leaves.
LEAVES = 30


def headers():
    """Ethernet, IPv4 and the flags of a data packet of NDP, as p4/ndp_switch.p4 reads them."""
    return bytes(12) + b"\x08\x00" + b"\x45" + bytes(8) + bytes([199]) + bytes(10) + b"\x00\x01"


@cocotb.test()
async def what_comes_leaves_or_is_lost(dut):
    await start(dut)
    room = len(dut.rx_packet_i) // 8
    dut.rx_packet_i.value = int.from_bytes(headers()[:room].ljust(room, b"\0"), "big")
    dut.rx_length_i.value = LENGTH
    decided, joined, left, busy_until = 0, [], [], None
    for cycle in range(PACKETS * (APART + LEAVES) + 200):
        comes = cycle % APART == 0 and cycle < PACKETS * APART
        dut.rx_valid_i.value = int(comes)
        dut.rx_tag_i.value = cycle // APART
        done = busy_until == cycle
        dut.done_i.value = int(done)
        if done:
            busy_until = None
        # What is offered depends on the cycles before alone.
        await Timer(250, unit="ps")
        takes = busy_until is None and dut.valid_o.value == 1
        dut.take_i.value = int(takes)
        await Timer(250, unit="ps")
        if takes:
            left.append(int(dut.tag_o.value))
            busy_until = cycle + LEAVES
        if dut.decided_o.value == 1:
            assert cycle == decided * APART + DECIDING, "decisions come in their cycle"
            decided += 1
            gone = [dut.dropped_o.value, dut.bounced_o.value, dut.lost_o.value]
            if not any(int(one) for one in gone):
                joined.append(int(dut.decided_tag_o.value))
        await FallingEdge(dut.clk_i)
    counts = {name: int(getattr(dut, f"{name}_o").value) for name in ["trims", "bounces", "drops", "losses"]}
    dut._log.info(f"{decided} packets decided, {len(left)} have left, {counts}")
    assert decided == PACKETS
    assert sorted(left) == joined, "each that joined a queue has left"
    assert len(joined) + counts["bounces"] + counts["drops"] + counts["losses"] == PACKETS
    assert dut.bytes_o.value == 0
