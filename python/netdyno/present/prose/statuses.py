"""How a status is called before a person; keys of the store and of JSON stay."""

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
