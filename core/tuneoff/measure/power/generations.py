"""Server CPU generations: how each is known by family, model and stepping, and by its name.

Sources: Linux' list of Intel models (arch/x86/include/asm/intel-family.h), AMD's revision guides, and the vendors' numbering of
products. Names are compared as `plain` leaves them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

INTEL, AMD, ARM = "GenuineIntel", "AuthenticAMD", "ARM"  # ARM: family is the implementer, model the part
_CLASS = r"\bxeon (?:platinum|gold|silver|bronze) "  # since 2017; before, Xeon 5160 and the like were something else
_XEON = r"\bxeon (?:(?:platinum|gold|silver|bronze|max) )?"  # the class is often left out since 2023
TELLING = frozenset({"avx2", "avx512f", "amx_tile"})
_AVX2 = frozenset({"avx2"})
_AVX512 = _AVX2 | {"avx512f"}
_AMX = _AVX512 | {"amx_tile"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """One row of the table of watts: CPUs of one make."""

    key: str
    vendor: str
    ids: tuple[tuple[int, int], ...]  # (family, model)
    pattern: str  # of plain names
    steppings: range | None = None  # where generations share a family and model
    flags: frozenset[str] = frozenset()  # those of `TELLING` that its CPUs have; another one means that a hypervisor lies
    threads_per_core: int | None = None  # a result with another number was misread by who collected it

    def is_named(self, plain_name: str) -> bool:
        """Tell whether a plain name is one of this generation."""
        return re.search(self.pattern, plain_name) is not None


def _amd(key: str, family_and_model: tuple[int, int], pattern: str, flags: frozenset[str]) -> Generation:
    return Generation(key=key, vendor=AMD, ids=(family_and_model,), pattern=pattern, flags=flags)


def _intel(key: str, models: int | tuple[int, int], pattern: str, flags: frozenset[str] = frozenset(), **more: Any) -> Generation:
    """Return a row of family 6."""
    ids = tuple((6, model) for model in ((models,) if isinstance(models, int) else models))
    return Generation(key=key, vendor=INTEL, ids=ids, pattern=pattern, flags=flags, **more)


GENERATIONS = (
    _amd("EPYC 7001 (Naples)", (23, 1), r"\bepyc 7[0-9a-z]\d1[a-z]*\b", _AVX2),
    _amd("EPYC 7002 (Rome)", (23, 49), r"\bepyc 7[0-9a-z]\d2[a-z]*\b", _AVX2),
    _amd("EPYC 7003 (Milan)", (25, 1), r"\bepyc 7[0-9a-z]\d3[a-z]*\b", _AVX2),
    _amd("EPYC 9004 (Genoa)", (25, 17), r"\bepyc 9(?!7)[0-9a-z]\d4[a-z]*\b", _AVX512),
    _amd("EPYC 9704 (Bergamo)", (25, 160), r"\bepyc 97\d4[a-z]*\b", _AVX512),
    _amd("EPYC 8004 (Siena)", (25, 160), r"\bepyc 8\d\d4[a-z]*\b", _AVX512),
    _amd("EPYC 9005 (Turin)", (26, 2), r"\bepyc 9(?!965|845|825|745|645)[0-9a-z]\d5[a-z]*\b", _AVX512),
    _amd("EPYC 9005 (Turin Dense)", (26, 17), r"\bepyc 9(?:965|845|825|745|645)[a-z]*\b", _AVX512),
    _intel("Xeon E5 (Sandy Bridge)", 45, r"\be5-\d{4}[a-z]?\b(?! ?v\d)"),
    _intel("Xeon E5 v2 (Ivy Bridge)", 62, r"\be[57]-\d{4}[a-z]? ?v2\b"),
    _intel("Xeon E5 v3 (Haswell)", 63, r"\be[57]-\d{4}[a-z]? ?v3\b", _AVX2),
    _intel("Xeon E5 v4 (Broadwell)", 79, r"\be[57]-\d{4}[a-z]? ?v4\b", _AVX2),
    _intel("Xeon Scalable 1 (Skylake)", 85, _CLASS + r"[3-8]1\d\d[a-z]*\b", _AVX512, steppings=range(5)),
    _intel("Xeon Scalable 2 (Cascade Lake)", 85, _CLASS + r"[3-9]2\d\d[a-z]*\b", _AVX512, steppings=range(5, 8)),
    _intel("Xeon Scalable 3 (Cooper Lake)", 85, _CLASS + r"[568]3\d\dhl?\b", _AVX512, steppings=range(10, 12)),
    _intel("Xeon Scalable 3 (Ice Lake)", 106, _CLASS + r"[3-8]3(?!\d\dhl?\b)\d\d[a-z]*\b", _AVX512),
    _intel("Xeon D-2700 (Ice Lake)", 108, r"\bxeon[ -]d-[12][78]\d\d", _AVX512),
    _intel("Xeon Scalable 4 (Sapphire Rapids)", 143, _XEON + r"[3-9]4\d\d[a-z]*(?!\w)", _AMX),
    _intel(
        "Xeon Scalable 5 (Emerald Rapids)", 207, _XEON + r"(?:[3-5]5\d\d[a-z]*|6[5]\d\d(?![pe]\b)[a-z]*|85\d\d[a-z]*)(?!\w)", _AMX
    ),
    _intel("Xeon 6 P-cores (Granite Rapids)", (173, 174), _XEON + r"6[5679]\d\dp\b", _AMX),
    _intel("Xeon 6 E-cores (Sierra Forest)", 175, _XEON + r"6[79]\d\de\b", _AVX2, threads_per_core=1),
    _intel("Xeon E3 v3 (Haswell)", 60, r"\be3-\d{4}[a-z]? ?v3\b", _AVX2),
    _intel("Xeon E3 v5 (Skylake)", 94, r"\be3-\d{4}[a-z]? ?v5\b", _AVX2),
    _intel("Xeon E3 v6, E-2100, E-2200 (Kaby and Coffee Lake)", 158, r"\be3-\d{4}[a-z]? ?v6\b|\bxeon e-2[12]\d\d", _AVX2),
    _intel("Xeon E-2300 (Rocket Lake)", 167, r"\bxeon e-23\d\d", _AVX512),
    _intel("Xeon E-2400, 6300 (Raptor Lake)", 183, r"\bxeon (?:e )?e-24\d\d|\bxeon 63\d\dp\b", _AVX2),
    Generation(key="Neoverse N1 (Ampere Altra)", vendor=ARM, ids=((0x41, 0xD0C),), pattern=r"\bampere altra\b"),
)


def plain(name: str) -> str:
    """Return a CPU's name in small letters without trade marks, "CPU", "processor", core counts and clock rates."""
    text = re.sub(r"\((?:r|tm)\)|®|™|,", " ", name.lower()).partition(" @ ")[0]
    return " ".join(re.sub(r"\b(?:cpu|processor|\d+-core)\b", " ", text).split())
