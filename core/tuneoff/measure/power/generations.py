"""Server CPU generations: how each is known by family, model and stepping, and by its name.

Sources: Linux' list of Intel models (arch/x86/include/asm/intel-family.h), AMD's revision guides, and the vendors' numbering of
products. Names are compared as `plain` leaves them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

INTEL, AMD, ARM = "GenuineIntel", "AuthenticAMD", "ARM"  # ARM: family is the implementer, model the part
_CLASS = r"\bxeon (?:platinum|gold|silver|bronze) "  # since 2017; before, Xeon 5160 and the like were something else
_XEON = r"\bxeon (?:(?:platinum|gold|silver|bronze|max) )?"  # the class is often left out since 2023


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


TELLING = frozenset({"avx2", "avx512f", "amx_tile"})
_AVX2 = frozenset({"avx2"})
_AVX512 = _AVX2 | {"avx512f"}
_AMX = _AVX512 | {"amx_tile"}

GENERATIONS = (
    Generation(key="EPYC 7001 (Naples)", vendor=AMD, ids=((23, 1),), pattern=r"\bepyc 7[0-9a-z]\d1[a-z]*\b", flags=_AVX2),
    Generation(key="EPYC 7002 (Rome)", vendor=AMD, ids=((23, 49),), pattern=r"\bepyc 7[0-9a-z]\d2[a-z]*\b", flags=_AVX2),
    Generation(key="EPYC 7003 (Milan)", vendor=AMD, ids=((25, 1),), pattern=r"\bepyc 7[0-9a-z]\d3[a-z]*\b", flags=_AVX2),
    Generation(key="EPYC 9004 (Genoa)", vendor=AMD, ids=((25, 17),), pattern=r"\bepyc 9(?!7)[0-9a-z]\d4[a-z]*\b", flags=_AVX512),
    Generation(key="EPYC 9704 (Bergamo)", vendor=AMD, ids=((25, 160),), pattern=r"\bepyc 97\d4[a-z]*\b", flags=_AVX512),
    Generation(key="EPYC 8004 (Siena)", vendor=AMD, ids=((25, 160),), pattern=r"\bepyc 8\d\d4[a-z]*\b", flags=_AVX512),
    Generation(
        key="EPYC 9005 (Turin)",
        vendor=AMD,
        ids=((26, 2),),
        pattern=r"\bepyc 9(?!965|845|825|745|645)[0-9a-z]\d5[a-z]*\b",
        flags=_AVX512,
    ),
    Generation(
        key="EPYC 9005 (Turin Dense)",
        vendor=AMD,
        ids=((26, 17),),
        pattern=r"\bepyc 9(?:965|845|825|745|645)[a-z]*\b",
        flags=_AVX512,
    ),
    Generation(key="Xeon E5 (Sandy Bridge)", vendor=INTEL, ids=((6, 45),), pattern=r"\be5-\d{4}[a-z]?\b(?! ?v\d)"),
    Generation(key="Xeon E5 v2 (Ivy Bridge)", vendor=INTEL, ids=((6, 62),), pattern=r"\be[57]-\d{4}[a-z]? ?v2\b"),
    Generation(key="Xeon E5 v3 (Haswell)", vendor=INTEL, ids=((6, 63),), pattern=r"\be[57]-\d{4}[a-z]? ?v3\b", flags=_AVX2),
    Generation(key="Xeon E5 v4 (Broadwell)", vendor=INTEL, ids=((6, 79),), pattern=r"\be[57]-\d{4}[a-z]? ?v4\b", flags=_AVX2),
    Generation(
        key="Xeon Scalable 1 (Skylake)",
        vendor=INTEL,
        ids=((6, 85),),
        steppings=range(5),
        pattern=_CLASS + r"[3-8]1\d\d[a-z]*\b",
        flags=_AVX512,
    ),
    Generation(
        key="Xeon Scalable 2 (Cascade Lake)",
        vendor=INTEL,
        ids=((6, 85),),
        steppings=range(5, 8),
        pattern=_CLASS + r"[3-9]2\d\d[a-z]*\b",
        flags=_AVX512,
    ),
    Generation(
        key="Xeon Scalable 3 (Cooper Lake)",
        vendor=INTEL,
        ids=((6, 85),),
        steppings=range(10, 12),
        pattern=_CLASS + r"[568]3\d\dhl?\b",
        flags=_AVX512,
    ),
    Generation(
        key="Xeon Scalable 3 (Ice Lake)",
        vendor=INTEL,
        ids=((6, 106),),
        pattern=_CLASS + r"[3-8]3(?!\d\dhl?\b)\d\d[a-z]*\b",
        flags=_AVX512,
    ),
    Generation(key="Xeon D-2700 (Ice Lake)", vendor=INTEL, ids=((6, 108),), pattern=r"\bxeon[ -]d-[12][78]\d\d", flags=_AVX512),
    Generation(
        key="Xeon Scalable 4 (Sapphire Rapids)",
        vendor=INTEL,
        ids=((6, 143),),
        pattern=_XEON + r"[3-9]4\d\d[a-z]*(?!\w)",
        flags=_AMX,
    ),
    Generation(
        key="Xeon Scalable 5 (Emerald Rapids)",
        vendor=INTEL,
        ids=((6, 207),),
        pattern=_XEON + r"(?:[3-5]5\d\d[a-z]*|6[5]\d\d(?![pe]\b)[a-z]*|85\d\d[a-z]*)(?!\w)",
        flags=_AMX,
    ),
    Generation(
        key="Xeon 6 P-cores (Granite Rapids)",
        vendor=INTEL,
        ids=((6, 173), (6, 174)),
        pattern=_XEON + r"6[5679]\d\dp\b",
        flags=_AMX,
    ),
    Generation(
        key="Xeon 6 E-cores (Sierra Forest)",
        vendor=INTEL,
        ids=((6, 175),),
        pattern=_XEON + r"6[79]\d\de\b",
        flags=_AVX2,
        threads_per_core=1,
    ),
    Generation(key="Xeon E3 v3 (Haswell)", vendor=INTEL, ids=((6, 60),), pattern=r"\be3-\d{4}[a-z]? ?v3\b", flags=_AVX2),
    Generation(key="Xeon E3 v5 (Skylake)", vendor=INTEL, ids=((6, 94),), pattern=r"\be3-\d{4}[a-z]? ?v5\b", flags=_AVX2),
    Generation(
        key="Xeon E3 v6, E-2100, E-2200 (Kaby and Coffee Lake)",
        vendor=INTEL,
        ids=((6, 158),),
        pattern=r"\be3-\d{4}[a-z]? ?v6\b|\bxeon e-2[12]\d\d",
        flags=_AVX2,
    ),
    Generation(key="Xeon E-2300 (Rocket Lake)", vendor=INTEL, ids=((6, 167),), pattern=r"\bxeon e-23\d\d", flags=_AVX512),
    Generation(
        key="Xeon E-2400, 6300 (Raptor Lake)",
        vendor=INTEL,
        ids=((6, 183),),
        pattern=r"\bxeon (?:e )?e-24\d\d|\bxeon 63\d\dp\b",
        flags=_AVX2,
    ),
    Generation(key="Neoverse N1 (Ampere Altra)", vendor=ARM, ids=((0x41, 0xD0C),), pattern=r"\bampere altra\b"),
)


def plain(name: str) -> str:
    """Return a CPU's name in small letters without trade marks, "CPU", "processor", core counts and clock rates."""
    text = re.sub(r"\((?:r|tm)\)|®|™|,", " ", name.lower()).partition(" @ ")[0]
    return " ".join(re.sub(r"\b(?:cpu|processor|\d+-core)\b", " ", text).split())


def all_named(plain_name: str) -> list[Generation]:
    """Return the generations of a plain name: one, or none."""
    return [generation for generation in GENERATIONS if generation.is_named(plain_name)]
