"""netdyno: a dynamometer for network servers. The harness plans, runs, stores, judges and reports."""

VERSION = "1.0.0"
"""The version of the whole project; CMakeLists.txt and packages/wheel read it here."""
