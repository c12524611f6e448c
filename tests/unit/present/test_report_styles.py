"""The styles of figures are written once, and every element keeps its style."""

from __future__ import annotations

import re

from netdyno.analysis.analysis import analyse
from netdyno.present import report
from netdyno.present.report.styles import OFTEN, share_styles
from tests.support.builders.made_run import made_run, with_only

TICK = '<use href="#t" style="fill: red; stroke: blue" x="1"/>'
PAGE = f"""<head><style>p {{ margin: 0 }}</style></head><p style="color: red">
<svg viewBox="0 0 1 1" aria-label="a"><defs>
<style type="text/css">*{{stroke-linejoin: round}}</style>
</defs>
{TICK * OFTEN}<text class="own" style="fill: red; stroke: blue">x</text><path style="fill: none"/></svg></p>"""


def test_what_is_stated_often_becomes_a_class_and_nothing_else_changes() -> None:
    page = share_styles(PAGE)
    assert ".st0.st0{fill: red; stroke: blue}" in page
    assert page.count('<use href="#t" class="st0" x="1"/>') == OFTEN
    assert '<text class="own" style="fill: red; stroke: blue">' in page
    assert '<path style="fill: none"/>' in page
    assert '<p style="color: red">' in page
    assert page.count("*{stroke-linejoin: round}") == 1
    assert page.count("<style") == 1


def test_each_element_of_a_report_keeps_its_style() -> None:
    page = report.render_html(analyse(with_only(made_run(), "echo")))
    rules = dict(re.findall(r"^\.(st\d+)\.st\d+\{([^}]*)\}$", page, re.MULTILINE))
    assert len(rules) > 5
    used = re.findall(r' class="(st\d+)"', page)
    assert set(used) == set(rules)
    assert len(used) > 10 * len(rules)
    figures = "".join(re.findall(r"<svg\b.*?</svg>", page, re.DOTALL))
    inline = [tag for tag in re.findall(r'<[a-z]+ [^<>]*style="[^<>]*>', figures) if " class=" not in tag]
    assert not [tag for tag in inline if any(f'style="{style}"' in tag for style in rules.values())]


def test_a_page_without_figures_has_no_rules_of_them() -> None:
    assert share_styles("<style>p{}</style><p>x</p>") == "<style>p{}\n</style><p>x</p>"
