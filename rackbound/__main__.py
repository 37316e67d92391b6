"""`python -m rackbound`: the same as the command."""

import sys

from rackbound._cli import main

if __name__ == "__main__":
    sys.exit(main())
