"""A packet of zeros through each pipeline: its results come when the module says."""

import cocotb
from cocotb.triggers import FallingEdge, Timer
from design import start

# Pipelines, and the cycles from a packet to its results.
LATENCIES = {@LATENCIES@}


@cocotb.test()
@cocotb.parametrize(pipeline=list(LATENCIES))
async def results_come_in_their_cycle(dut, pipeline):
    await start(dut)
    came = []
    for cycle in range(LATENCIES[pipeline] + 3):
        getattr(dut, f"{pipeline}_valid_i").value = int(cycle == 0)
        await Timer(500, unit="ps")
        if getattr(dut, f"{pipeline}_valid_o").value == 1:
            came.append(cycle)
        await FallingEdge(dut.clk_i)
    assert came == [LATENCIES[pipeline]], came
