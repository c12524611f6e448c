"""Protocol classes on asyncio's own event loop, which is Python over epoll."""

import sys

from netdyno_server.options import read_options


def main() -> None:
    options = read_options(sys.argv)
    # Only now: most of a start is these imports, and an option that is refused needs none of them.
    import asyncio

    from servers._shared.asyncio.protocols import serve

    serve(options, asyncio.new_event_loop())


main()
