"""`python -m netdyno` is the command line (cli.py)."""

import sys

try:
    from netdyno.verbs.cli import main

    code = main()
except KeyboardInterrupt:  # while the code was still being loaded
    code = 130
sys.exit(code)
