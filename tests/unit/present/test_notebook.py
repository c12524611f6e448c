"""The notebook of docs/ runs as it stands, beside an export of a run, and comes to the report's own figures."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from netdyno.kit.paths import ROOT
from netdyno.present.export import tables
from netdyno.present.export.collect import collect
from tests.support.builders.analysed import analysed
from tests.support.builders.made_run import made_run

pytestmark = pytest.mark.xdist_group("runs that are exported")


def test_the_notebook_recomputes_each_ratio_of_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "export.csv").write_text(tables.format_csv(collect(analysed(made_run()))))
    monkeypatch.chdir(tmp_path)
    book = json.loads((ROOT / "docs/export.ipynb").read_text())
    names: dict[str, Any] = {}
    shown: Any = None
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            *statements, last = ast.parse("".join(cell["source"])).body
            exec(compile(ast.Module(statements, []), "export.ipynb", "exec"), names)
            assert isinstance(last, ast.Expr)
            shown = eval(compile(ast.Expression(last.value), "export.ipynb", "eval"), names)
            assert cell["outputs"], "run it, and keep what it shows"
    assert len(shown) > 20
    assert list(shown["recomputed"]) == pytest.approx(list(shown["value"]), rel=1e-12)
