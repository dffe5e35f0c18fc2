"""The command `trimline`, also as `python -m trimline`."""

import sys

from . import _trimline


def main() -> None:
    """Do what the arguments say, and end with the command's exit code."""
    # Without the working directory among the places of modules, where Python can leave it out.
    safe = ["-P"] if sys.version_info >= (3, 11) else []
    program = [sys.executable, *safe, "-m", "trimline"]
    sys.exit(_trimline.main(program, sys.argv[1:]))


if __name__ == "__main__":
    main()
