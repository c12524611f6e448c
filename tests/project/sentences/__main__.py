"""Print every sentence: `.venv/bin/python -m tests.project.sentences`."""

from tests.project.sentences.collect import page

print(page(), end="")
