"""The meanings of the keys of an experiment file that are no options, by their tables, for `netdyno list keys`. A test
compares them with the keys that the parsers take."""

from __future__ import annotations

from collections.abc import Mapping

_NEEDS: Mapping[str, str] = {
    "needs": "What the machine must have, such as 'cores >= 4', 'second host', 'one host' or a library ('folly').",
    "needs-to-confirm": "What a confirmation needs.",
    "needs-to-refute": "What a refutation needs.",
}
MEANINGS: Mapping[str, Mapping[str, str]] = {
    "experiment": {
        "question": "The title of table and report.",
        "scenario": "A table for each scenario.",
        "claim": "A table for each claim.",
        "figure": "A table for each chart.",
        "flip": "A table for each search for the place where the winner changes.",
        "budget": "A table for each other budget, smoke and full.",
        "include": "In place of scenarios: other experiments of the folder, for one report.",
    },
    "scenario": {
        "factors": "A table: a list of levels for each option that varies.",
        "server": "A table: server options; a server that lacks one skips the cell.",
        "where-possible": "A table: options for those servers that have them.",
    },
    "budget": {
        "blocks": "In place of the file's.",
        "precision": "In place of the file's.",
        "most-blocks": "In place of the file's.",
        "warmup": "In place of the file's.",
        "warmup-per-connection": "In place of the file's.",
        "duration": "In place of the file's.",
        "scenario": "A table for each scenario that changes: the same keys, factors and contestants.",
    },
    "claim": {
        "id": "Its name, unique in the file.",
        "text": "The published sentence, shortened.",
        "published": "The source's figures; each label states the unit.",
        "published-on": "The operating systems of the source.",
        "differs": "What is measured otherwise here.",
        **_NEEDS,
        "why": "Counters that the report shows for both sides.",
        "test": "A table, or several that must all hold.",
        "script": "A table: the tests as the source ran its own program.",
        "account": "A table of sentences on its verdict, for docs/studies.md.",
    },
    "claim.account": {
        "objection": "What its author would say of the verdict.",
        "overturn": "What would overturn it.",
        "program": "Where the source's own program does otherwise.",
        "answer": "What was done about it.",
    },
    "claim.script": {
        "by": "script (default): by the load of the source's own program; build: by its build.",
        "because": "A sentence on why the verdict by the program differs from that by the text.",
        "test": "As in the claim.",
    },
    "claim.test": {
        "kind": "ratio, bound, order, trend or flat.",
        "metric": "What is compared (./netdyno list metrics).",
        "cells": "The cells that are tested: values of scenario, contestant and factors.",
        "a": "What the first side adds to the cells.",
        "b": "What the second side adds to the cells.",
        "above": "The threshold; a time is a text, such as '40ms'.",
        "below": "The threshold; a time is a text, such as '40ms'.",
        "within": "Both thresholds, [0.9, 1.1]; flat: the largest ratio to the first level (of shares: difference).",
        "every": "true: the test must hold in each cell.",
        "least-published": "The published effect nearest to the threshold; an interval that ends short of it fails.",
        "over": "Divides each figure by that of this cell, such as { connections = 100 }.",
        "minus": "Subtracts the figure of this cell.",
        "along": "The axis: contestant or a factor.",
        "rising": "Values of the axis; those of an inner list are not compared with each other.",
        "falling": "Values of the axis; those of an inner list are not compared with each other.",
        "direction": "rises or falls.",
        "only-refutes": "true: this test can refute the claim and not confirm it.",
        **_NEEDS,
    },
    "figure": {
        "kind": "bars, surface (a heat map), ladder (a rung for each contestant) or curves.",
        "title": "Its heading.",
        "scenario": "Which one, if there are several; a list makes it another coordinate.",
        "metric": "As in a claim's test, but none of the code; or handshake.",
        "cells": "As in a claim's test; the chart keeps the order of the values.",
        "along": "The axis: a factor or contestant; of a surface the x axis.",
        "across": "What distinguishes marks at one place; of a surface the y axis.",
        "panels": "One or two coordinates; each of their values has a panel.",
        "below": "Metrics that are drawn under the first.",
        "scale": "linear or log (default of a ladder), of the metric.",
        "x-scale": "linear or log, of the axis.",
        "published": "The source's figures, drawn as hollow marks: a list of tables.",
    },
    "figure.published": {
        "at": "The value of each coordinate; on an axis of numbers it may lie between levels.",
        "value": "The figure in the metric's unit, or a time such as '3.9ms'.",
    },
    "flip": {
        "between": "The two sides: contestants or groups.",
        "groups": "The names or patterns of each group, whose figure is its geometric mean.",
        "scenario": "Which one, if there are several.",
        "along": "A factor of numbers or durations.",
        "from": "The least level, above 0.",
        "to": "The greatest level.",
        "within": "The search ends when the levels around the change are this near, as a ratio (default 1.5).",
        "metric": "In place of the scenario's; no share, and none of the code.",
    },
}
