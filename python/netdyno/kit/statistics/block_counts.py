"""The numbers of blocks that a judgement takes: docs/adr/statistics.md, docs/adr/adaptive-precision.md,
docs/adr/gate.md. No numpy here: planning needs the counts and no statistics."""

FEWEST_BLOCKS = 5
"""The fewest blocks of a comparison that can be judged, and of an interval. Among fifty comparisons Student's t makes
an interval of four blocks 6.5 standard deviations wide to each side, and one of five 3.9; and the fewer blocks, the
more it depends on normal noise."""
MANY_BLOCKS = 1000
"""More blocks than are ever measured."""
FIRST_LOOK = 10
"""The number of blocks after which the width of an interval is first checked."""
LOOKS = 8
"""The number of successive looks, one after each block, at which the interval must have been narrow enough."""
EARLIEST_END = FIRST_LOOK + LOOKS - 1
GATE_LOOKS = (6, 9, 13, 20, 30, 45, 68, 100, 150, 225)
"""The numbers of blocks after which a gate is looked at: each half as many more than before (statistics/looks.py)."""
FLIP_LOOKS = (6, 9, 13, 20, 30)
"""The numbers of blocks after which a level is looked at to find a flip (statistics/bisection.py)."""
ADVICE_LOOKS = (5, 8, 12, 18, 27, 40, 60)
"""The numbers of blocks after which a run that is to advise checks which contestants are beaten, and whether it may
end. It may also end between two looks, with its time, which counts as one more look (analysis/advice)."""
