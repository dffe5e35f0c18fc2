"""A NIC with its bytes that talks to itself: its frames come back to it some cycles later, until the
application has read the message that it has written. Ports: ../PORTS.md."""

import cocotb
from cocotb.triggers import FallingEdge, Timer
from design import start

# IP protocols of the program's messages.
PROTOCOLS = [@PROTOCOLS@]
# Cycles that a frame is on its way.
WAY = 40
# Least cycles between two packets that are chosen: 65 B at 200 Gb/s.
SPACING = 9
OWN_IP = 0x0A000001
MESSAGE = bytes(i * 7 % 251 for i in range(3000))
# What never changes.
CONSTANTS = dict(
    nic_mac_i=0x020000000000 | OWN_IP,
    switch_mac_i=0x020000000001,
    nic_ip_i=OWN_IP,
    rx_app_ready_i=1,
    tx_frame_ready_i=1,
)


def beats_of(data):
    """Beats of 64 bytes, each with how many bytes it has and whether it is the last (beat_t)."""
    parts = [data[at : at + 64] for at in range(0, len(data), 64)]
    beats = [int.from_bytes(part, "little") | len(part) << 512 for part in parts]
    return beats[:-1] + [beats[-1] | 1 << 519]


def bytes_of(port):
    """The bytes of a beat, and whether it is the last."""
    beat = int(port.value)
    data = (beat & (1 << 512) - 1).to_bytes(64, "little")
    return data[: beat >> 512 & 0x7F], bool(beat >> 519)


@cocotb.test()
@cocotb.parametrize(protocol=PROTOCOLS)
async def a_message_to_itself(dut, protocol):
    await start(dut, **CONSTANTS)
    dut.submit_protocol_i.value = protocol
    dut.submit_dst_ip_i.value = OWN_IP
    dut.submit_src_context_i.value = 7
    dut.submit_msg_len_i.value = len(MESSAGE)
    submitted, words, flying, read, next_tx = False, beats_of(MESSAGE), [], b"", 0
    frames, is_read = 0, False
    for cycle in range(50_000):
        dut.submit_valid_i.value = int(not submitted)
        dut.words_valid_i.value = int(submitted and bool(words))
        if words:
            dut.words_beat_i.value = words[0]
        arrives = bool(flying) and flying[0][0] <= cycle
        dut.rx_frame_valid_i.value = int(arrives)
        if arrives:
            dut.rx_frame_beat_i.value = flying[0][1]
        is_open = next_tx <= cycle
        dut.tx_open_i.value = int(is_open)
        # Outputs are functions of this cycle's inputs, too: let them settle.
        await Timer(500, unit="ps")
        if submitted and words and dut.words_ready_o.value == 1:
            words.pop(0)
        submitted = submitted or dut.submit_ready_o.value == 1
        if is_open and dut.tx_room_o.value == 1 and dut.waits_o.value == 1:
            next_tx = cycle + SPACING
        if arrives and dut.rx_frame_ready_o.value == 1:
            flying.pop(0)
        if dut.tx_frame_valid_o.value == 1:
            flying.append((cycle + WAY, int(dut.tx_frame_beat_o.value)))
            frames += bytes_of(dut.tx_frame_beat_o)[1]
        if dut.rx_app_valid_o.value == 1:
            part, is_last = bytes_of(dut.rx_app_beat_o)
            read += part
            if is_last:
                assert read == MESSAGE
                assert dut.rx_app_src_ip_o.value == OWN_IP
                is_read = True
        if is_read and dut.acked_valid_o.value == 1:
            dut._log.info(f"protocol {protocol}: {frames} frames, acknowledged in cycle {cycle}")
            return
        await FallingEdge(dut.clk_i)
    assert False, f"{frames} frames sent, {len(read)} bytes read, and no acknowledgement"
