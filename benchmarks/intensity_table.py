"""Make core's table of carbon intensities by zone from CodeCarbon's file of countries.

    pip download --no-deps codecarbon==3.3.2 && unzip codecarbon-3.3.2-*.whl -d codecarbon-wheel
    python benchmarks/intensity_table.py codecarbon-wheel/codecarbon/data/private_infra/global_energy_mix.json 3.3.2

Zones without generation or with an intensity of 0 are left out: where so little is generated, the source rounds emissions to 0.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

TABLE = Path(__file__).parents[1] / "core" / "tuneoff" / "experiment" / "accounting" / "tables" / "intensity.json"
FILE = "codecarbon/data/private_infra/global_energy_mix.json"


def make_table(mixes: dict[str, dict[str, Any]], version: str) -> dict[str, Any]:
    """Return the table: a head that says where it comes from, and per zone its name, gCO2eq/kWh and year."""
    usable = {code: mix for code, mix in mixes.items() if mix["carbon_intensity"] > 0 and mix["total_TWh"] > 0}
    generated = sum(mix["total_TWh"] for mix in usable.values())
    mean = sum(mix["carbon_intensity"] * mix["total_TWh"] for mix in usable.values()) / generated
    newest = max(mix["year"] for mix in usable.values())
    share = 100 * sum(mix["total_TWh"] for mix in usable.values() if mix["year"] == newest) / generated
    zones: dict[str, list[Any]] = {
        "WORLD": [f"World, mean of {len(usable)} zones by generation, {share:.0f} % of it of {newest}", round(mean, 2), newest]
    }
    zones |= {code: [mix["country_name"], round(mix["carbon_intensity"], 2), mix["year"]] for code, mix in sorted(usable.items())}
    return {
        "name": "Carbon intensity of electricity by country, life cycle, mean of a year",
        "unit": "gCO2eq/kWh",
        "source": f"CodeCarbon {version} from Our World in Data, Ember and the Energy Institute",
        "license": "CodeCarbon: MIT; Our World in Data and Ember: CC BY 4.0; see LICENSES.txt beside this file",
        "made_from": FILE,
        "made_by": "benchmarks/intensity_table.py",
        "zones": zones,
    }


def table_text(table: dict[str, Any]) -> str:
    """Return the table as JSON, one line per zone."""
    head = {key: value for key, value in table.items() if key != "zones"}
    lines = [f"  {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in table["zones"].items()]
    return json.dumps({**head, "zones": {}}, indent=1)[: -len("{}\n}")] + "{\n" + ",\n".join(lines) + "\n }\n}\n"


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit("usage: python benchmarks/intensity_table.py GLOBAL_ENERGY_MIX_JSON CODECARBON_VERSION")
    table = make_table(json.loads(Path(sys.argv[1]).read_text()), sys.argv[2])
    TABLE.write_text(table_text(table))
    print(f"{len(table['zones'])} zones; the world's mean is {table['zones']['WORLD'][1]} {table['unit']}: {TABLE}")


if __name__ == "__main__":
    main()
