"""Bytes as they should not be: good ones that were changed by chance."""

from __future__ import annotations

from random import Random

MOST_GROWTH = 4096
SPLICED = (b"\0", b"\0\0\0\0", b"\xff\xff\xff\xff", b"\x80" * 9, b"\r\n\r\n", b"\n", b" ", b"-1", b"9" * 20, b"{", b'"')


def mutated(chance: Random, good: bytes) -> bytes:
    """One to four changes of `good`: bits, bytes, pieces that are cut out, doubled, moved or put in."""
    changed = bytearray(good)
    for _ in range(chance.choice((1, 1, 2, 4))):
        offset = chance.randrange(len(changed) + 1)
        size = min(chance.choice((1, 2, 4, 16, 100)), len(changed) - offset)
        match chance.randrange(7):
            case 0 if size:
                changed[offset] ^= 1 << chance.randrange(8)
            case 1:
                changed[offset : offset + size] = chance.randbytes(size)
            case 2:
                del changed[offset : offset + size]
            case 3:
                changed[offset:offset] = changed[offset : offset + size] * chance.choice((1, 2, MOST_GROWTH // 100))
            case 4:
                changed[offset:offset] = chance.choice(SPLICED)
            case 5:
                del changed[offset:]
            case _:
                changed += changed[:offset]
    return bytes(changed)


def pieces(chance: Random, whole: bytes) -> list[bytes]:
    """The same bytes, cut anywhere."""
    cuts = sorted(chance.randrange(len(whole) + 1) for _ in range(chance.choice((0, 1, 3, 8))))
    return [whole[low:high] for low, high in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
