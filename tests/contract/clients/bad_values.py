"""What no client takes, whatever language it is written in (protocol/client.md)."""

BAD_VALUES = {
    "--workload": ("", "ech", "echo", "http"),
    "--connections": ("", "0", "-1", "1.5", "many"),
    "--size": ("", "0", "27", "big"),
    "--duration": ("", "0", "5", "-1s", "soon"),
    "--warmup": ("", "5", "-1s"),
    "--timeout": ("", "0", "5", "-1s"),
    "--connect-timeout": ("", "0", "5", "-1s"),
    "--retry-delay": ("", "5", "-1s"),
    "--linger": ("", "5", "-1s"),
    "--service-time": ("", "5", "11s"),
    "--nodelay": ("", "yes", "ON"),
    "--write-mode": ("", "both"),
    "--seed": ("", "-1", "x"),
    "--events-fd": ("", "-1", "999"),
}
NOT_FOR_CLIENTS = (
    "--rate",
    "--arrivals",
    "--depth",
    "--start",
    "--threads",
    "--connect-rate",
    "--source-ips",
    "--audience",
    "--hdr",
    "--no-such-option",
)
"""Options of the load generator, and none. One that speaks chat has depth and start there, and refuses them of rpc."""
BAD_URLS = ("", "127.0.0.1:9", "udp://127.0.0.1:9", "tcp://127.0.0.1", "tcp://127.0.0.1:0")
