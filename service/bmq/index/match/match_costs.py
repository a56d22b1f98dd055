"""Predicts the time of a call in each match structure, from the number of queries, of values, and of what these meet.

Knows formulas and measured constants; it must not decide anything. What values meet is counted for a sample of values
(`index.match.adaptive_match`), so no distribution is assumed.
"""

from dataclasses import dataclass
from enum import Enum

import numpy as np

from bmq.records.plane import PLANE


class MatchKind(Enum):
    """The structures of which match indexes consist."""

    TREE = "tree"  # the packed tree that each query table has
    CONSTRUCTS = "constructs"  # virtual constructs: SCI on a line, VCR in the plane
    CORNERS = "corners"  # the join of clustered values with queries as corner points

    def fits(self, n_dims: int) -> bool:
        """Return whether this kind has a structure for values of ``n_dims`` dimensions."""
        return n_dims <= PLANE or self is not MatchKind.CONSTRUCTS


# Nanoseconds of a call for each term below. Fitted by `python -m bench.match_choice`, on one thread of an AMD EPYC.
# Another machine changes all of them alike, and only their ratios decide.
NS: dict[MatchKind, tuple[float, ...]] = {
    MatchKind.TREE: (1.37e4, 21.2, 393.0, 8.4, 5.08),
    MatchKind.CONSTRUCTS: (5.9e4, 64.1, 25.2, 199.0, 4.34, 5.42),
    MatchKind.CORNERS: (1.16e5, 1.02, 90.1, 21.8, 5.75, 1.17, 1.58),
}

FAR = 32_768  # queries; a larger structure outgrows the second cache


@dataclass(frozen=True, slots=True)
class MatchWorkload:
    """The queries, and what values meet among them.

    Attributes
    ----------
    n_dims, n_queries : at least 1.
    n_values : mean number of values in a call.
    n_matches : mean number of queries that hold a value.
    n_visited : mean number of rows and boxes that the packed tree looks at for a value.
    n_listed : mean number of entries in the lists of the constructs that cover a value; 0 if no constructs fit
        ``n_dims``.
    """

    n_dims: int
    n_queries: int
    n_values: float
    n_matches: float
    n_visited: float
    n_listed: float


def call_ns(kind: MatchKind, workload: MatchWorkload) -> float:
    """Return the predicted nanoseconds of a call."""
    return float(np.dot(NS[kind], terms(kind, workload)))


def terms(kind: MatchKind, workload: MatchWorkload) -> tuple[float, ...]:
    """Return the cost of a call in units of ``NS``."""
    n, n_queries = workload.n_values, workload.n_queries
    far = float(np.log2(1 + n_queries / FAR))
    if kind is MatchKind.TREE:
        return 1.0, n, n * far, n * workload.n_visited, n * workload.n_visited * far
    if kind is MatchKind.CONSTRUCTS:
        # In the plane there are more runs of lists, and more entries need the final check.
        in_plane, n_listed = workload.n_dims - 1.0, n * workload.n_listed
        return 1.0, n, n * in_plane, n * far, n_listed, n_listed * in_plane
    # A call meets each leaf anyway; the values of a cluster share what the search finds there.
    n_columns = 2.0 * workload.n_dims
    depth = float(np.log2(1 + n_queries))
    of_values = n, n * n_columns, n * n_columns * depth, n * n_columns * float(np.sqrt(n_queries))
    return 1.0, n_queries * n_columns, *of_values, n * workload.n_matches
