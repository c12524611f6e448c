"""The advice on a workload: the contestant to take, its distance from the best, and where the answer changes."""
