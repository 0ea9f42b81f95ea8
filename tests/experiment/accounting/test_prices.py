"""Price files: what they may say, and the one that ships."""

from __future__ import annotations

from pathlib import Path

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
        ("- 1", "the file must be a mapping of keys to values"),
        ("name: [", "not YAML"),
        ("name: ours\ndate: 2026-03\n", "source: is required"),
        (HEAD + "usd_per_cpu_hour: 1\n", "unknown key 'usd_per_cpu_hour'; did you mean 'usd_per_vcpu_hour'?"),
        (HEAD + "usd_per_vcpu_hour: -0.1\n", "usd_per_vcpu_hour: must be at least 0, but got -0.1"),
        (HEAD + "usd_per_vcpu_hour: 1e308\n", "usd_per_vcpu_hour: must be at most 1e+09, but got 1e+308"),
        (HEAD + "usd_per_vcpu_hour: .inf\n", "usd_per_vcpu_hour: must be finite, but got inf"),
        (HEAD + "usd_per_vcpu_hour: .nan\n", "usd_per_vcpu_hour: must be finite, but got nan"),
        (HEAD + "usd_per_kwh: cheap\n", "usd_per_kwh: must be a number, but got 'cheap'"),
        (HEAD + "usd_per_kwh: '0.2'\n", "usd_per_kwh: must be a number, but got '0.2'; write it without quotes"),
        (HEAD + "usd_per_kwh: true\n", "usd_per_kwh: must be a number, but got true"),
        (HEAD + "usd_per_gb_hour: [1]\n", "usd_per_gb_hour: must be a number, but got [1]"),
        (HEAD + "premises: borrowed\n", "premises: must be one of 'rented' or 'own', but got 'borrowed'"),
        (HEAD + "premises: own\n", "`premises: own` needs `usd_per_kwh`"),
        (HEAD + "billing_minimum_seconds: -1\n", "billing_minimum_seconds: must be at least 0"),
        (HEAD + "billing_granularity_seconds: 1e9\n", "billing_granularity_seconds: must be at most 86400"),
        (HEAD + "name: twice\n", "key 'name' is given twice"),
        ("name: ours\nsource: x\ndate: 2026\n", "date: must be text, but got 2026; put it in quotes"),
        ("name: ours\nsource: x\ndate: March\n", "date: must be a year, a month or a day, e.g. 2026-03, but got 'March'"),
        ("name: ours\nsource: x\ndate: 2026-13\n", "date: must be a year, a month or a day"),
        ("name: ''\nsource: x\ndate: 2026-03\n", "name: must not be empty"),
    ],
)
def test_a_bad_file_is_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    said = refusal(read, tmp_path, text)
    assert message in said
    assert str(tmp_path / "prices.yaml") in said


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    assert "none.yaml: the file cannot be read" in refusal(read_prices, tmp_path / "none.yaml")
    assert "a price file is a YAML file, but this is a folder" in refusal(read_prices, tmp_path)
