"""How many blocks a judgement takes: docs/adr/statistics.md, docs/adr/adaptive-precision.md, docs/adr/gate.md. No numpy
here: who plans needs the counts and no statistics."""

FEWEST_BLOCKS = 5
"""Of a comparison that can be judged, and of an interval. Among fifty comparisons Student's t makes an interval of four
blocks 6.5 standard deviations wide to each side, and one of five 3.9; and the fewer blocks, the more it hangs on noise
being normal."""
MANY_BLOCKS = 1000
"""Nobody measures more."""
FIRST_LOOK = 10
"""The number of blocks after which an interval is first asked how wide it is."""
LOOKS = 8
"""At so many looks in succession, one after each block, it must have been narrow enough."""
EARLIEST_END = FIRST_LOOK + LOOKS - 1
GATE_LOOKS = (6, 9, 13, 20, 30, 45, 68, 100, 150, 225)
"""The numbers of blocks after which a gate is looked at: each half as many more than before (statistics/looks.py)."""
FLIP_LOOKS = (6, 9, 13, 20, 30)
"""The same of a level that is measured to find a flip (statistics/bisection.py)."""
ADVICE_LOOKS = (5, 8, 12, 18, 27, 40, 60)
"""The numbers of blocks after which a run that is to advise looks at who is beaten, and whether it may end. It may also
end between two of them, with its time, which counts as one look more (analysis/advice)."""
