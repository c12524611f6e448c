"""Score a load generator against a server that does exactly what it was programmed to do (docs/calibration.md).

`truths` and `scores` are pure; `cases` says what is asked; `running` starts the programs; `others` reads what other
generators print; `card` shows."""
