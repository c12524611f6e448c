"""Run pytest as on the oldest processor that numpy runs on: `python -m tests.support.oldest_processor tests/unit`.

The C library, numpy and its linear algebra each choose their arithmetic by the processor, and the last bits of exp,
log, sums and products differ with it. A test that passes with either choice does not hang on them."""

from __future__ import annotations

import importlib
import os
import sys

numpy_core = importlib.import_module("numpy._core._multiarray_umath")  # as numpy.show_runtime() does
DISPATCHED = [name for name in numpy_core.__cpu_dispatch__ if numpy_core.__cpu_features__[name]]
"""The features that numpy can switch off: it warns of those that were built in, and of those that are not there."""
ARITHMETIC = {
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX,-AVX2,-AVX512F,-FMA,-FMA4",
    "OPENBLAS_CORETYPE": "Nehalem",
    "NPY_DISABLE_CPU_FEATURES": " ".join(DISPATCHED),
}


if __name__ == "__main__":
    os.execve(sys.executable, [sys.executable, "-m", "pytest", *sys.argv[1:]], os.environ | ARITHMETIC)
