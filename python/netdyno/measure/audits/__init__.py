"""Pure verdicts on a trial: whether its figures can be believed."""
