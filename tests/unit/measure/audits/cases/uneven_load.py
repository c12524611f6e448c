from netdyno.model.load_result import Audit
from netdyno.model.uneven_load import judge


def fails() -> Audit:
    """Others ran beside one of two contestants in all blocks."""
    return judge({"met": [1.0] * 6, "spared": [0.0] * 6})


def passes() -> Audit:
    return judge({"met": [1.0, 0.0] * 3, "spared": [0.0, 1.0] * 3})
