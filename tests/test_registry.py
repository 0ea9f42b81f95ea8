"""Plugins: found without importing frameworks, told apart when they are missing, old, broken or ambiguous."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

import fake_plugins
from builders.specs import toy_spec
from tuneoff import registry
from tuneoff.adapter import Capabilities, import_framework
from tuneoff.base.capabilities import framework_status
from tuneoff.base.packages import module_exists, release
from tuneoff.errors import MissingPackageError, PluginError, UnknownNameError

BROKEN = {
    "nowhere": ("no_such_module:Adapter", "No module named 'no_such_module'"),
    "nameless": ("fake_plugins:Nothing", "has no 'Nothing'"),
    "function": ("fake_plugins:plugin", "must be a subclass of Adapter"),
    "workload": ("fake_plugins:Curve", "must be a subclass of Adapter"),
    "unfinished": (
        "fake_plugins:Unfinished",
        "must implement every step, but fake_plugins:Unfinished of fakes 1.0 lacks: collect_results",
    ),
    "undeclared": ("fake_plugins:Undeclared", "must declare `capabilities`"),
    "lazy": ("plugin_that_loads_late:Adapter", "cannot be imported: ModuleNotFoundError: No module named 'no_such_framework'"),
    "raising": ("plugin_that_raises:Adapter", "RuntimeError: first line second line"),
    "exiting": ("plugin_that_exits:Adapter", "ends the process while it is imported (exit code 3)"),
}


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "plugin_that_raises.py").write_text("raise RuntimeError('first line\\nsecond line')\n")
    (tmp_path / "plugin_that_loads_late.py").write_text("def __getattr__(name):\n    import no_such_framework\n")
    (tmp_path / "plugin_that_exits.py").write_text("raise SystemExit(3)\n")
    monkeypatch.syspath_prepend(tmp_path)
    fake_plugins.register(monkeypatch, *(fake_plugins.plugin(name, target) for name, (target, _) in BROKEN.items()))


@pytest.mark.usefixtures("plugins")
def test_a_broken_plugin_is_a_line_of_the_listing_and_breaks_nothing() -> None:
    listings = {listing.plugin.name: listing for listing in registry.list_adapters()}
    for name, (_, problem) in BROKEN.items():
        assert listings[name].state == "broken"
        assert problem in listings[name].text
        assert "\n" not in listings[name].text
        assert listings[name].capabilities is None
    assert listings["plain"].state == "ready"


@pytest.mark.usefixtures("plugins")
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_plugin_asked_for_by_name_is_an_error_with_its_distribution(name: str) -> None:
    with pytest.raises(PluginError, match=r"fakes 1\.0") as caught:
        registry.adapter_class(name)
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("plugins")
def test_missing_old_and_ready_frameworks_are_told_apart() -> None:
    listings = {listing.plugin.name: listing for listing in registry.list_adapters()}
    assert (listings["rich"].state, listings["rich"].framework) == ("ready", "PyYAML")
    assert listings["rich"].framework_version[0].isdigit()
    assert listings["missing"].state == "missing"
    assert listings["missing"].text == "adapter 'missing' needs the nowhere-tune package; run: pip install nowhere-tune"
    assert listings["old"].state == "too old"
    assert "needs PyYAML >= 99.1, but" in listings["old"].text
    assert "run: pip install PyYAML" in listings["old"].text


@pytest.mark.usefixtures("plugins")
def test_unknown_adapter_names_the_known_ones() -> None:
    with pytest.raises(
        UnknownNameError, match=r"no adapter named 'plian'; did you mean 'plain'\?; known: .*; or give it as module:Class"
    ):
        registry.adapter_class("plian")
    with pytest.raises(UnknownNameError, match="no workload named 'x'; known: careless, curve, heavy"):
        registry.workload_class("x")


def test_two_plugins_of_one_name_are_refused_with_both_distributions(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_plugins.register(
        monkeypatch,
        fake_plugins.plugin("twice", "fake_plugins:Plain", "one"),
        fake_plugins.plugin("twice", "fake_plugins:Rich", "other"),
    )
    with pytest.raises(PluginError, match=r"'twice' comes from one 1.0 and other 1.0; uninstall one, or give module:Class"):
        registry.adapter_class("twice")
    listings = [listing for listing in registry.list_adapters() if listing.plugin.name == "twice"]
    assert [listing.state for listing in listings] == ["broken", "broken"]
    assert registry.adapter_class("fake_plugins:Plain") is fake_plugins.Plain


def test_a_class_beside_the_experiment_needs_no_installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "adapter_beside.py").write_text("from fake_plugins import Plain as Mine\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [item for item in sys.path if item])
    assert registry.adapter_class("adapter_beside:Mine") is fake_plugins.Plain


@pytest.mark.parametrize(
    ("target", "module"),
    [("no_such_module:Mine", "no_such_module"), ("no_such.part:Mine", "no_such.part"), ("xmlrpc.nothing:Mine", "xmlrpc.nothing")],
)
def test_a_class_of_a_module_that_is_not_there_is_an_unknown_name_with_the_way_out(target: str, module: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        registry.adapter_class(target)
    assert caught.value.exit_code == 2
    assert str(caught.value) == (
        f"adapter {target!r} is not there: no module named {module!r}; install its package, or run in the folder that holds it "
        "(or add that folder to PYTHONPATH)"
    )


def test_a_class_whose_module_fails_while_importing_is_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "half_adapter.py").write_text("import half_adapter_needs_this\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(PluginError, match=r"'half_adapter:Mine' is broken .*No module named 'half_adapter_needs_this'") as caught:
        registry.adapter_class("half_adapter:Mine")
    assert caught.value.exit_code == 6
    assert str(caught.value).endswith(" (half_adapter.py:1)")


@pytest.mark.usefixtures("plugins")
def test_workloads_are_listed_with_their_classes() -> None:
    assert {listing.plugin.name: listing.loaded for listing in registry.list_workloads()} == {
        "careless": fake_plugins.Careless,
        "curve": fake_plugins.Curve,
        "heavy": fake_plugins.Heavy,
    }


def test_tuneoffs_own_plugins_are_registered_like_a_third_partys() -> None:
    registry.scan.cache_clear()
    assert {plugin.name for plugin in registry.scan("adapter")} >= {"serial", "optuna", "ray-tune", "syne-tune"}
    assert {plugin.name for plugin in registry.scan("workload")} >= {"mnist_mlp", "null", "sleep", "surrogate", "faulty"}


@pytest.mark.parametrize(
    ("version", "expected"),
    [("2.60.0", (2, 60)), ("2.60.0rc1", (2, 60)), ("5", (5,)), ("1!2.0.1", (2, 0, 1)), ("0.16.0+cpu", (0, 16)), ("", ())],
)
def test_releases_are_compared_by_their_numbers(version: str, expected: tuple[int, ...]) -> None:
    assert release(version) == expected


def test_versions_out_of_range_are_refused_on_both_sides() -> None:
    bounds = Capabilities(framework="PyYAML", package="PyYAML", module="yaml", minimum_version="5", below_version="6")
    status = framework_status("x", bounds)
    assert status.state == "too new"
    assert "needs PyYAML >= 5, < 6, but" in status.text
    with pytest.raises(MissingPackageError):
        import_framework("x", bounds)


def test_a_framework_that_fails_on_import_is_broken_not_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "half_framework.py").write_text("import a_part_that_is_not_there\n")
    monkeypatch.syspath_prepend(tmp_path)
    half = Capabilities(framework="Half", package="half-framework", module="half_framework", install="half")
    with pytest.raises(PluginError, match=r"importing 'half_framework' fails: ModuleNotFoundError: .*a_part_that_is_not_there"):
        import_framework("x", half)
    with pytest.raises(MissingPackageError, match="needs the none-such package; run: pip install none-such"):
        import_framework("x", Capabilities(framework="None", package="none-such", module="none_such"))


def test_a_distribution_without_its_module_is_broken() -> None:
    status = framework_status("x", Capabilities(framework="PyYAML", package="PyYAML", module="yaml_gone"))
    assert status.state == "broken"
    assert "is installed, but its module 'yaml_gone' is not" in status.text


def test_looking_for_a_submodule_does_not_import_its_parent() -> None:
    sys.modules.pop("xmlrpc", None)
    assert module_exists("xmlrpc.client")
    assert "xmlrpc" not in sys.modules


def test_a_broken_platform_is_a_line_and_its_neighbours_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {kind: list(registry.scan(kind)) for kind in get_args(registry.Kind)}
    known["platform"].append(registry.Plugin(name="torn", target="no_such_module:Torn", distribution="torn", version="1"))
    monkeypatch.setattr(registry, "scan", known.__getitem__)
    listings = {listing.plugin.name: listing for listing in registry.list_platforms()}
    assert "platform 'torn' is broken (torn 1)" in listings["torn"].text
    assert listings["torn"].loaded is None
    assert listings["local"].text == ""
    with pytest.raises(PluginError, match="platform 'torn' is broken"):
        registry.adapter_class("serial").placement(replace(toy_spec("serial"), platform="torn"))
