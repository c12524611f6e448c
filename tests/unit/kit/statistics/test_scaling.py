"""The fits find the losses that speedups were made from, and say when they cannot."""

from __future__ import annotations

import pytest

from netdyno.analysis.notices.scaling import fit_amdahl, fit_gunther


def gunther(cores: int, contention: float, coherency: float) -> float:
    return cores / (1 + contention * (cores - 1) + coherency * cores * (cores - 1))


@pytest.mark.parametrize("share", [0.0, 0.05, 0.5, 1.0, -0.02])
@pytest.mark.parametrize("cores", [(2,), (2, 4, 8), (3, 64)])
def test_the_serial_share_is_that_of_the_speedups(share: float, cores: tuple[int, ...]) -> None:
    speedups = {count: gunther(count, share, 0) for count in cores}
    assert fit_amdahl(speedups) == pytest.approx(share, abs=1e-12)


@pytest.mark.parametrize(("contention", "coherency"), [(0.0, 0.0), (0.1, 0.0), (0.03, 0.002), (-0.01, 0.001)])
@pytest.mark.parametrize("cores", [(2, 4), (2, 4, 8), (2, 16, 64)])
def test_both_losses_are_those_of_the_speedups(contention: float, coherency: float, cores: tuple[int, ...]) -> None:
    fit = fit_gunther({count: gunther(count, contention, coherency) for count in cores})
    assert fit.contention == pytest.approx(contention, abs=1e-12)
    assert fit.coherency == pytest.approx(coherency, abs=1e-12)


def test_amdahl_splits_what_it_cannot_explain() -> None:
    """8 cores lose more than their share of two; the fit lies between both, nearer to the larger loss."""
    assert 0.1 < fit_amdahl({2: gunther(2, 0.1, 0), 8: gunther(8, 0.3, 0)}) < 0.3


@pytest.mark.parametrize("speedups", [{}, {1: 1.0}, {1: 1.0, 2: 1.9}])
def test_a_speedup_on_one_core_says_nothing(speedups: dict[int, float]) -> None:
    with pytest.raises(ValueError, match="more than one core"):
        fit_amdahl(speedups)


@pytest.mark.parametrize("speedups", [{}, {2: 1.9}, {1: 1.0, 2: 1.9}])
def test_one_speedup_does_not_tell_two_losses_apart(speedups: dict[int, float]) -> None:
    with pytest.raises(ValueError, match="two numbers of cores"):
        fit_gunther(speedups)
