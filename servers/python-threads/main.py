"""A thread per connection in CPython under its global interpreter lock."""

import sys

from netdyno_server.options import read_options


def main() -> None:
    options = read_options(sys.argv)
    # Only now: most of a start is these imports, and an option that is refused needs none of them.
    from servers._shared.python.threads import serve

    serve(options)


main()
