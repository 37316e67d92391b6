"""Profiles: what a file may say, what is refused, and that writing and reading give the same."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from collectives import CONSTANTS, Profile, list_profiles, load_profile, write_profile
from topo import InputError


def _made(law: str = "collective") -> Profile:
    constants = {name: max(0.5, row.least) if row.unit == "ratio" else 4.5e-6 for name, row in CONSTANTS[law].items()}
    return Profile(
        name="mine", version=3, law=law, source='a "log", 2026', fitted=date(2026, 12, 1), libraries=("nccl",),
        bandwidth=450e9, chips=("H100", "H200"), band=(0.04, 0.15), constants=constants,
        errors=dict.fromkeys(list(constants)[:1], 0.03), environments={"Azure ND": 1.75},
    )  # fmt: skip


@pytest.mark.parametrize("law", CONSTANTS)
def test_a_written_profile_is_read_back(law: str, tmp_path: Path) -> None:
    made = _made(law)
    write_profile(made, tmp_path / "mine.toml")
    assert load_profile(tmp_path / "mine.toml") == made
    assert load_profile(made) is made


@pytest.mark.parametrize("name", list_profiles())
def test_every_profile_that_ships_loads_and_says_where_it_comes_from(name: str) -> None:
    profile = load_profile(name)
    assert profile.name == name
    assert profile.source
    assert (profile.fitted is None) == (profile.law in ("ideal", "nccl-model"))
    assert set(profile.constants) == set(CONSTANTS[profile.law])
    assert set(profile.errors) <= set(profile.constants)


def test_all_faults_of_a_file_are_said_at_once(tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text('name = 3\nlaw = "collective"\nfoo = 1\n[constants.latency]\nbase = 3\nbade = "2 us"\n')
    with pytest.raises(InputError) as caught:
        load_profile(path)
    places = {fault.place for fault in caught.value.faults}
    assert {"name", "version", "source", "foo", "constants.latency.base", "constants.latency.bade"} <= places
    assert all(fault.file == str(path) for fault in caught.value.faults)


def test_an_unknown_name_suggests_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Did you mean 'ideal'"):
        load_profile("idael")
    with pytest.raises(InputError, match="cannot be read"):
        load_profile(tmp_path / "none.toml")
    (tmp_path / "law.toml").write_text('name = "x"\nversion = 1\nsource = "s"\nlaw = "colective"\n')
    with pytest.raises(InputError, match="Did you mean 'collective'"):
        load_profile(tmp_path / "law.toml")


def test_an_environment_scales_latency_alone() -> None:
    made = _made()
    there = made.within("nccl 2.18.5 (Azure ND)")
    assert there.constants == made.constants | {"latency.environment": 0.5 * 1.75}
    assert made.within("nccl 2.29.2") is made


@pytest.mark.parametrize(
    ("text", "instead", "said"),
    [
        ("overlap = 6", "overlap = 0.5 #", "constants.scale_out.overlap = 0.5: must be 1 or more"),
        ("low_efficiency = 0", "low_efficiency = 0.0 #", "exchange.low_efficiency = 0.0: must be 1e-06 or more"),
        ("efficiency = 0.99", "efficiency = 1.99 #", "constants.scale_out.efficiency = 1.99: must not be more than 1"),
        ("band = [", "band = [0.2, 0.1] # [", "band = .0.2, 0.1.: must be the median and the 90th percentile"),
        ("\"2.18.5 (Azure\" = 1", "\"2.18.5 (Azure\" = -1 #", "environments.2.18.5 .Azure = -1: must be 1e-06 or more"),
    ],
)  # fmt: skip
def test_what_no_wire_and_no_norm_can_be_is_refused(text: str, instead: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    write_profile(load_profile("nccl-hopper"), path)
    whole = path.read_text()
    assert text in whole
    path.write_text(whole.replace(text, instead))
    with pytest.raises(InputError, match=said):
        load_profile(path)
