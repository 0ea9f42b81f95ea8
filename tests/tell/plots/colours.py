"""Contrast by WCAG 2, and how different colours look, to colour-blind eyes too."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Machado, Oliveira and Fernandes 2009, full severity, on linear RGB
EYES = {
    "usual": np.eye(3),
    "protan": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
    "deutan": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]),
    "tritan": np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]),
}
_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
_WHITE = np.array([0.9505, 1.0, 1.089])


def linear(colour: str) -> NDArray[np.float64]:
    """Return linear RGB of `#rrggbb`."""
    parts = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours, from 1 to 21."""
    dark, light = sorted(float(_XYZ[1] @ linear(colour)) for colour in (one, other))
    return (light + 0.05) / (dark + 0.05)


def difference(one: str, other: str, eye: str) -> float:
    """Return the distance of two colours in CIELAB, as an eye sees them."""
    return float(np.linalg.norm(_lab(EYES[eye] @ linear(one)) - _lab(EYES[eye] @ linear(other))))


def _lab(rgb: NDArray[np.float64]) -> NDArray[np.float64]:
    xyz = _XYZ @ np.clip(rgb, 0, 1) / _WHITE
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])
