"""Names that receivers see instead of households' ids: another one in every period, by a secret key.

A pseudonym is the keyed BLAKE2b (RFC 7693) of period and id. Who has not the key can neither find the id behind
one nor tell which two of different periods are the same household's.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

LETTERS = 16
"""Of a pseudonym, in base 32: 80 bits."""

_LEAST_BYTES, _MOST_BYTES = 16, 4_096
_BYTES, _BITS_PER_LETTER = 10, 5
_ALPHABET = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz234567", np.uint8)
_PREFIX = struct.Struct("<qqI")
_WEIGHTS = 1 << np.arange(_BITS_PER_LETTER - 1, -1, -1)


@dataclass(frozen=True, slots=True)
class PseudonymKey:
    """A secret key; it does not show what it is.

    Attributes:
        secret: 64 bytes.

    """

    secret: bytes = field(repr=False)

    @classmethod
    def of(cls, text: bytes) -> PseudonymKey:
        """Return the key that a file's content makes; blanks around it do not count.

        Raises:
            ValueError: it is too short, or too long to be one.

        """
        text = text.strip()
        if not _LEAST_BYTES <= len(text) <= _MOST_BYTES:
            raise ValueError(f"not a key of {_LEAST_BYTES} to {_MOST_BYTES:,} bytes")
        return cls(hashlib.blake2b(text).digest())

    @classmethod
    def read(cls, path: Path) -> PseudonymKey:
        """Return the key in a file.

        Raises:
            OSError: it cannot be read.
            ValueError: its content is no key.

        """
        with path.open("rb") as file:
            return cls.of(file.read(_MOST_BYTES + 2))

    @property
    def fingerprint(self) -> str:
        """What names the key in public, and tells nothing of it."""
        return hashlib.blake2b(key=self.secret, digest_size=16, person=b"fingerprint").hexdigest()


class Pseudonyms:
    """The pseudonyms of one key.

    Args:
        key: the secret.
        period_ms: how long a household keeps one; periods are aligned to UTC.
        letters: the pseudonyms' length, 16 at most.

    """

    def __init__(self, key: PseudonymKey, period_ms: int, letters: int = LETTERS) -> None:
        self._key = key
        self._period_ms = period_ms
        self._letters = letters

    def period_of(self, start_ms: int) -> int:
        """Return the number of the period that a slot beginning at ``start_ms`` belongs to."""
        return start_ms // self._period_ms

    def of(self, start_ms: int, ids: Sequence[str]) -> list[str]:
        """Return the households' pseudonyms in a slot, in the order of the ids; no two are the same.

        Raises:
            ValueError: there are more households than pseudonyms.

        """
        period = self.period_of(start_ms)
        names = self._hashed(period, 0, ids)
        if len(set(names)) == len(names):
            return names
        return self._apart(period, ids)

    def _apart(self, period: int, ids: Sequence[str]) -> list[str]:
        """Give who meets another's pseudonym the next one of her own; the roll's order does not decide who."""
        if len(ids) > len(_ALPHABET) ** self._letters:
            raise ValueError("more households than pseudonyms")
        owner: dict[str, str] = {}
        for name in sorted(ids):
            attempt = 0
            while (pseudonym := self._hashed(period, attempt, [name])[0]) in owner:
                attempt += 1
            owner[pseudonym] = name
        pseudonym_of = {name: pseudonym for pseudonym, name in owner.items()}
        return [pseudonym_of[name] for name in ids]

    def _hashed(self, period: int, attempt: int, ids: Iterable[str]) -> list[str]:
        prefix = _PREFIX.pack(self._period_ms, period, attempt)
        keyed = hashlib.blake2b(prefix, key=self._key.secret, digest_size=_BYTES, person=b"household")
        digests = bytearray()
        for name in ids:
            one = keyed.copy()
            one.update(name.encode())
            digests += one.digest()
        bits = np.unpackbits(np.frombuffer(digests, np.uint8)).reshape(-1, LETTERS, _BITS_PER_LETTER)
        letters = _ALPHABET[bits @ _WEIGHTS][:, : self._letters].tobytes().decode()
        return [letters[i : i + self._letters] for i in range(0, len(letters), self._letters)]
