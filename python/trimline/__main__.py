"""The command `trimline`, also as `python -m trimline`."""

import sys

from . import _command, _trimline


def main() -> None:
    """Do what the arguments say, and end with the command's exit code."""
    sys.exit(_trimline.main(_command.program(), sys.argv[1:]))


if __name__ == "__main__":
    main()
