"""The house is as the architecture page draws it: rooms, layers, no circle, nothing overfull."""

import ast
import re

import pytest

from tools import house


@pytest.mark.parametrize("package", house.PACKAGES)
def test_no_modules_import_one_another_in_a_circle(package):
    assert house.circles(package) == []


def test_what_stands_beside_the_packages_imports_in_no_circle_either():
    """Benchmarks use worlds of tests, and tests use cases of benchmarks: module by module."""
    assert house.circles(*house.BESIDE) == []


@pytest.mark.parametrize("package", house.PACKAGES | house.BESIDE)
def test_no_room_has_more_modules_than_one_can_keep_in_mind(package):
    top = (house.PACKAGES | house.BESIDE)[package]
    sizes = {str(room.relative_to(top)): len(files) for room, files in house.rooms(top).items()}
    assert {room: n for room, n in sizes.items() if n > house.MODULES_MAX} == {}


BOUND = re.compile(r"_(MAX|MIN|FEW|S|AT_ONCE|PER_STEP|PER_S|(OF|IN)_A_STEP|OF_WORK|OF_SEARCH)$")
"""What a bound is named. A name that says how much the work is counts as one, too."""
OF_BOUNDS = "model/policy", "model/limits"
"""Where they are: of placing, with what an operator may choose, and of everything else."""
OF_FORMATS = {"QUANTITY_MAX", "_INT64_MAX", "SLOTS_MAX"}
"""The largest numbers that a format or an array holds: no choice of ours."""


def test_every_bound_of_the_core_is_in_its_place():
    """So that two pages tell them all, and a test may set each."""
    found = []
    for name, path in house.modules("quorate").items():
        place = name.removeprefix("quorate.core.").replace(".", "/")
        if not name.startswith("quorate.core.") or place in OF_BOUNDS:
            continue
        for node in ast.parse(path.read_text()).body:
            targets = node.targets if isinstance(node, ast.Assign) else []
            names = [one.id for one in targets if isinstance(one, ast.Name) and one.id.isupper()]
            found += [f"{place}: {one}" for one in names if BOUND.search(one)]
    assert [one for one in found if one.split(": ")[1] not in OF_FORMATS] == []


@pytest.mark.parametrize("package", [*house.PACKAGES, "bench", "tools"])
def test_every_room_says_what_it_is_for(package):
    top = (house.PACKAGES | house.BESIDE)[package]
    silent = [str(room) for room in house.rooms(top) if not house.purpose(room / "__init__.py")]
    assert silent == []


@pytest.mark.parametrize("above", ["quorate", "quorate.core", "pocketkube"])
def test_every_room_is_in_a_layer(above):
    layered = {module for one in house.contracts() for row in one.layers for module in row}
    modules = house.modules(above.partition(".")[0])
    known = {name for name in modules if name.rpartition(".")[0] == above}
    assert known - layered - {"quorate.__main__"} == set()


def test_the_page_draws_the_house_as_it_is():
    page = house.PAGE.read_text()
    assert page == house.drawn_in(page), "run: python -m tools.house --write"


def test_a_gang_s_state_is_written_by_news_by_time_and_by_the_one_door():
    """Planning reads it. ``rebuilding`` and the scheduler restore it after a defect."""
    writers = set()
    for name, path in house.modules("quorate").items():
        for node in ast.walk(ast.parse(path.read_text())):
            targets = node.targets if isinstance(node, ast.Assign) else []
            for target in [one for many in targets for one in ast.walk(many)]:
                of = target.value if isinstance(target, ast.Attribute) else None
                if isinstance(of, ast.Attribute) and of.attr in ("lifecycle", "memory"):
                    writers.add(name)
    rooms = ("quorate.core.cluster.", "quorate.core.lifecycle.")
    doors = {"quorate.core.turn.applying", "quorate.core.turn.rebuilding", "quorate.core.scheduler"}
    assert {one for one in writers if not one.startswith(rooms)} <= doors
    assert "quorate.core.lifecycle.attempts" in writers
