"""Price files: what they may say."""

from __future__ import annotations

import pickle
from pathlib import Path

import msgspec
import pytest

from builders.refusals import refusal
from tuneoff.experiment.accounting.declared import Prices
from tuneoff.experiment.accounting.resolve import read_prices

HEAD = "name: ours\nsource: the invoice\ndate: 2026-03\n"


def read(folder: Path, text: str) -> Prices:
    path = folder / "prices.yaml"
    path.write_text(text)
    return read_prices(path)


def test_what_a_file_leaves_out_is_not_known(tmp_path: Path) -> None:
    prices = read(tmp_path, HEAD + "usd_per_vcpu_hour: 0.05\n")
    assert (prices.name, prices.source, prices.date, prices.premises) == ("ours", "the invoice", "2026-03", "rented")
    assert prices.usd_per_vcpu_hour == 0.05
    assert prices.usd_per_gb_hour is prices.usd_per_kwh is prices.usd_per_accelerator_hour is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty; it needs at least `name`, `source`, `date` and the prices"),
        ("name: ours\ndate: 2026-03\n", "source: is required"),
        (HEAD + "usd_per_cpu_hour: 1\n", "unknown key 'usd_per_cpu_hour'; did you mean 'usd_per_vcpu_hour'?"),
        (HEAD + "usd_per_kwh: '0.2'\n", "usd_per_kwh: must be a number, but got '0.2'; write it without quotes"),
        (HEAD + "usd_per_kwh: .nan\n", "usd_per_kwh: must be finite, but got nan"),
        (HEAD + "premises: borrowed\n", "premises: must be one of 'rented' or 'own', but got 'borrowed'"),
        (HEAD + "premises: own\n", "`premises: own` needs `usd_per_kwh`"),
        ("name: ours\nsource: x\ndate: 2026\n", "date: must be text, but got 2026; put it in quotes"),
        ("name: ours\nsource: x\ndate: March\n", "date: must be a year, a month or a day, e.g. 2026-03, but got 'March'"),
    ],
)
def test_a_bad_file_is_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    said = refusal(read, tmp_path, text)
    assert message in said
    assert str(tmp_path / "prices.yaml") in said


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    assert "a price file is a YAML file, but this is a folder" in refusal(read_prices, tmp_path)


def test_what_nobody_wrote_is_left_out_of_json_wherever_they_come_from() -> None:
    prices = Prices(name="n", source="s", date="d", usd_per_vcpu_hour=1.0)
    assert pickle.loads(pickle.dumps(prices)).to_json() == {"name": "n", "source": "s", "date": "d", "usd_per_vcpu_hour": 1.0}
    written = msgspec.json.decode(b'{"name": "n", "source": "s", "date": "d", "billing_minimum_seconds": 0.0}', type=Prices)
    assert "billing_minimum_seconds" in pickle.loads(pickle.dumps(written)).to_json()
