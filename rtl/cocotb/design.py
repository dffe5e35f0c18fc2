"""What every test of this design begins with."""

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge

# Its inputs: to look for them among all signals takes longer than the test.
INPUTS = """
@INPUTS@
""".split()


async def start(dut, **inputs):
    """Every input is zero but `inputs`, then the design comes out of its reset."""
    assert inputs.keys() <= set(INPUTS), inputs
    for name in ["rst_ni", *INPUTS]:
        getattr(dut, name).value = inputs.get(name, 0)
    cocotb.start_soon(Clock(dut.clk_i, 2, unit="ns").start())
    for _ in range(2):
        await FallingEdge(dut.clk_i)
    dut.rst_ni.value = 1
    await FallingEdge(dut.clk_i)
