"""A packet of zeros through each pipeline: its results come when the module says."""

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, Timer

# Inputs: to look for them among all signals takes longer than the test.
INPUTS = """
@INPUTS@
""".split()
# Pipelines, and the cycles from a packet to its results.
LATENCIES = {@LATENCIES@}


async def start(dut):
    for name in ["rst_ni", *INPUTS]:
        getattr(dut, name).value = 0
    cocotb.start_soon(Clock(dut.clk_i, 2, unit="ns").start())
    for _ in range(2):
        await FallingEdge(dut.clk_i)
    dut.rst_ni.value = 1
    await FallingEdge(dut.clk_i)


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
