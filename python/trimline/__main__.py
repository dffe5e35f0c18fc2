"""The command `trimline`, also as `python -m trimline`."""

import sys

from . import _trimline


def main() -> None:
    """Do what the arguments say, and end with the command's exit code."""
    program = [sys.executable, "-m", "trimline"]
    sys.exit(_trimline.main(program, sys.argv[1:]))


if __name__ == "__main__":
    main()
