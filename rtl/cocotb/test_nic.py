"""A NIC that talks to itself: what it sends comes back to it some cycles later, until its message
is delivered and acknowledged. Ports: ../PORTS.md."""

import cocotb
from cocotb.triggers import FallingEdge, Timer
from design import start

# IP protocols of the program's messages.
PROTOCOLS = [@PROTOCOLS@]
# Least cycles between two packets that come, and between two that are chosen: 65 B at 200 Gb/s.
SPACING = 9
# Cycles that a packet is on its way.
WAY = 40
OWN_IP = 0x0A000001
MSG_LEN = 3000
# What never changes.
CONSTANTS = dict(
    nic_mac_i=0x020000000000 | OWN_IP,
    switch_mac_i=0x020000000001,
    nic_ip_i=OWN_IP,
)


def frame_of(dut):
    """The headers that come out, the first byte first, and the length of the whole frame: that of
    IPv4 and Ethernet's 14 bytes."""
    headers = int(dut.tx_frame_o.value).to_bytes(len(dut.tx_frame_o) // 8, "big")
    return headers, int.from_bytes(headers[16:18], "big") + 14


def comes(dut, headers, length):
    """A frame comes: as many of its first bytes as the port has."""
    room = len(dut.rx_frame_i) // 8
    dut.rx_frame_i.value = int.from_bytes(headers[:room].ljust(room, b"\0"), "big")
    dut.rx_length_i.value = length


@cocotb.test()
@cocotb.parametrize(protocol=PROTOCOLS)
async def a_message_to_itself(dut, protocol):
    await start(dut, **CONSTANTS)
    dut.submit_protocol_i.value = protocol
    dut.submit_dst_ip_i.value = OWN_IP
    dut.submit_src_context_i.value = 7
    dut.submit_msg_len_i.value = MSG_LEN
    flying, sent, next_rx, next_tx, delivered = [], 0, 0, 0, False
    for cycle in range(50_000):
        dut.submit_valid_i.value = int(cycle == 0)
        arrives = bool(flying) and flying[0][0] <= cycle and next_rx <= cycle
        dut.rx_valid_i.value = int(arrives)
        if arrives:
            comes(dut, *flying.pop(0)[1])
            next_rx = cycle + SPACING
        is_open = next_tx <= cycle
        dut.tx_open_i.value = int(is_open)
        # Outputs are functions of this cycle's inputs, too: let them settle.
        await Timer(500, unit="ps")
        if cycle == 0:
            assert dut.submit_ready_o.value == 1, "a NIC without messages has room"
        if is_open and dut.waits_o.value == 1:
            next_tx = cycle + SPACING
        if dut.tx_valid_o.value == 1:
            flying.append((cycle + WAY, frame_of(dut)))
            sent += 1
        if dut.delivered_valid_o.value == 1:
            assert dut.delivered_msg_len_o.value == MSG_LEN
            assert dut.delivered_src_ip_o.value == OWN_IP
            delivered = True
        if dut.acked_valid_o.value == 1:
            assert delivered, "acknowledged and not delivered"
            dut._log.info(f"protocol {protocol}: {sent} packets, acknowledged in cycle {cycle}")
            return
        await FallingEdge(dut.clk_i)
    assert False, f"{sent} packets sent, delivered: {delivered}, and no acknowledgement"
