"""Protocol classes on uvloop's event loop, which is libuv in Cython."""

import sys

from netdyno_server.options import read_options


def main() -> None:
    options = read_options(sys.argv)
    # Only now: most of a start is these imports, and an option that is refused needs none of them.
    import uvloop
    from servers._shared.asyncio.protocols import serve

    serve(options, uvloop.new_event_loop(), timer_step_s=0.001)


main()
