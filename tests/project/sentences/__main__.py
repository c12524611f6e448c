"""Write sentences.txt: `.venv/bin/python -m tests.project.sentences`."""

from tests.project.sentences.collect import PAGE, page

PAGE.write_text(page(), encoding="utf-8")
