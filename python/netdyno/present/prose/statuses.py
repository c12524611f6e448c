"""The displayed names of a trial's status; the keys of the store and of JSON stay."""

from __future__ import annotations

STATUS_WORDS = {
    "valid": "valid",
    "struck_out": "invalid",
    "skipped": "skipped",
    "failed": "failed",
    "faulty": "faulty",
    "made_again": "retried",
    "censored": "valid, as a bound",
}
