"""How closely a policy's cell pins two inputs down: the smallest ball around the cell ([DP] II, IV).

The best estimate of the inputs is the ball's centre, and its radius the worst error: what the volume bounds of
[DP] II.1 and II.2 are bounds of.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, pairwise
from math import sqrt

from gateway.privacy.policies import UniformPolicy
from gateway.privacy.regions import MeanOfTwo, WeightedSquares


def radii(query: MeanOfTwo | WeightedSquares, policy: UniformPolicy) -> list[float]:
    """Return for each cell of a policy the radius of the smallest ball around its inputs."""
    if isinstance(query, MeanOfTwo):
        return [_band_radius(query, low, high) for low, high in pairwise(policy.edges)]
    return [_ring_radius(query, high) for high in policy.edges[1:]]


def _band_radius(query: MeanOfTwo, low: Fraction, high: Fraction) -> float:
    """Return the radius of a diagonal band of the square.

    A band mirrors itself when both inputs are swapped, so the centre is ``(t, t)``. Its corners are
    ``(m + d, m − d)`` with ``d = side/2 − |m − middle|``, at squared distance ``2(m − t)² + 2d²``.
    """
    middle = (query.lower + query.upper) / 2
    means = [low, high, *([middle] if low < middle < high else [])]
    corners = [(mean, (query.upper - middle) - abs(mean - middle)) for mean in means]
    return sqrt(2 * min(_farthest(corners, t) for t in _centres(corners)))


def _centres(corners: Sequence[tuple[Fraction, Fraction]]) -> list[Fraction]:
    """Return where the largest of the corners' parabolas in t can be least: at a vertex, or where two meet."""
    meets = [
        (m * m + d * d - n * n - e * e) / (2 * (m - n))
        for (m, d), (n, e) in combinations(corners, 2)
        if m != n
    ]
    return [*(mean for mean, _ in corners), *meets]


def _farthest(corners: Sequence[tuple[Fraction, Fraction]], t: Fraction) -> Fraction:
    return max((mean - t) ** 2 + half**2 for mean, half in corners)


def _ring_radius(query: WeightedSquares, high: Fraction) -> float:
    """Return the radius of a ring of ellipses: it mirrors itself in 0, so 0 is the centre.

    Its farthest point lies on the outer ellipse: as far along the axis of the smaller weight as the square
    goes, and what is then left along the other.
    """
    light, heavy = sorted((query.a, query.b))
    along = min(high / light, query.half_side**2)
    return sqrt(along + min((high - light * along) / heavy, query.half_side**2))
