"""Score a load generator against a server that does exactly what it was programmed to do (docs/calibration.md).

`truths` and `scores` are pure; `cases` defines the trials; `running` starts the programs; `others` reads the output of
other generators; `card` shows the scores."""
