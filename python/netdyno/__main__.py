"""`python -m netdyno` is the command line (cli.py)."""

import sys

from netdyno.commands.cli import main

sys.exit(main())
