"""Make one fuzzed experiment file, or a file that it names, and ask the command line about it; nothing is ever run."""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from fuzz import bases, octets, oracle
from fuzz.odd_files import ODD_FILES
from fuzz.sandbox import Place, call_forked
from fuzz.trees import OF_JSON
from fuzz.values import scalar, written

FILE = "experiment.yaml"
COMMANDS = (["plan", FILE], ["plan", FILE, "--json"], ["compare", FILE], ["compare", FILE, "--json", "--resume"])


def ask(place: Place, chance: random.Random) -> list[str]:
    """Make a file, ask about it, and return what is wrong with the answer."""
    bases.write_neighbours(place.work)
    path = place.work / FILE
    path.write_text(chance.choice(bases.texts()))
    kind = chance.choice(("odd", "neighbour", "value", "value", "value", "value", "bytes", "bytes", "bytes"))
    if kind == "neighbour":
        path.write_text(bases.texts()[-1])
        path = place.work / chance.choice(("series.csv", "prices.yaml"))
    done, argv = _spoiled(path, kind, chance), chance.choice(COMMANDS)
    oracle.seen(f"{kind}: {done}", f"{kind}: {done}; {argv}")
    return oracle.failures(argv[0], call_forked(_main, argv, place))


def _main(argv: Sequence[str]) -> int:
    """Call the command line; what would start the first run ends here, with success."""
    from tuneoff.cli.main import main
    from tuneoff.run import execute

    def would_run(*_: Any, **__: Any) -> NoReturn:
        raise SystemExit(0)

    execute.execute = would_run
    return main(argv)


def _spoiled(path: Path, kind: str, chance: random.Random) -> str:
    """Spoil a file in one or more ways, and return the first."""
    if kind == "odd":
        odd = chance.choice(sorted(ODD_FILES))
        path.unlink()
        ODD_FILES[odd](path, chance)
        return odd
    if kind == "value":
        tree = copy.deepcopy(chance.choice(bases.trees()))
        changes = chance.choices(sorted(OF_JSON), k=chance.choice((1, 1, 1, 2, 3, 5)))
        for change in changes:
            tree = OF_JSON[change](tree, chance, scalar)
        path.write_text(written(tree), encoding="utf-8", errors="surrogatepass")
        return changes[0]
    content, other = path.read_bytes(), chance.choice(bases.texts()).encode()
    changes = chance.choices(sorted(octets.CHANGES), k=chance.choice((1, 1, 2, 4)))
    for change in changes:
        content = octets.CHANGES[change](content, other, chance)
    path.write_bytes(content)
    return changes[0]
