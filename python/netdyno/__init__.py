"""netdyno: a dynamometer for network servers. The harness plans, runs, stores, judges and reports."""
