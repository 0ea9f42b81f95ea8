"""Values on a grid and values with rounding: when two numbers are the same number."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ROUNDING = 1e-12  # of the greatest size: equal values, once subtracted, may differ in their last bits
OFF_GRID = 1e-6  # of a step


def rounding(differences: NDArray[np.float64], scale: float = 0.0) -> float:
    """Return the size up to which a difference is rounding alone; `scale`: the greatest size of what was subtracted."""
    import numpy as np

    finite = np.abs(differences[np.isfinite(differences)])
    return ROUNDING * max(scale, float(finite.max(initial=0.0)))


def without_rounding(differences: NDArray[np.float64], grid_step: float, scale: float) -> tuple[NDArray[np.float64], float]:
    """Return the differences with equal ones made exactly equal, and the grid step they are on: 0 where they are on none.

    On a grid they are counted in steps, where sums and halves are exact; multiply by the step to get the unit back.
    """
    import numpy as np

    if grid_step > 0:
        steps = differences / grid_step
        whole = np.round(steps)
        finite = np.isfinite(steps)
        if np.all(np.abs(steps[finite] - whole[finite]) <= OFF_GRID):
            return whole, grid_step
    return _merged(differences, rounding(differences, scale)), 0.0


def _merged(differences: NDArray[np.float64], tolerance: float) -> NDArray[np.float64]:
    """Return the differences where sizes that follow each other within the tolerance are one size, and 0 is one of them."""
    import numpy as np

    sizes = np.unique(np.append(np.abs(differences), 0.0))
    with np.errstate(invalid="ignore"):
        is_new = np.append(True, np.diff(sizes) > tolerance)
    firsts = sizes[is_new]
    places = np.searchsorted(firsts, np.abs(differences), side="right") - 1
    return np.asarray(np.sign(differences) * firsts[places])
