"""The house is as the architecture page draws it: rooms, layers, no circle."""

import ast
import functools

import pytest

from tools import house


@pytest.mark.parametrize("package", house.PACKAGES)
def test_no_modules_import_one_another_in_a_circle(package):
    assert house.circles(package) == []


def test_what_stands_beside_the_packages_imports_in_no_circle_either():
    """Benchmarks use worlds of tests, and tests use cases of benchmarks: module by module."""
    assert house.circles(*house.BESIDE) == []


OF_BOUNDS = "model/policy", "model/steps/costs"
"""Where they are: how much is done at most, and how much of each work is one step."""
NO_BOUNDS = {
    # The largest number that a format or an array holds, or one that stands for no limit at all.
    *("QUANTITY_MAX", "_INT64_MAX", "SLOTS_MAX", "NO_COLUMN", "UNLIMITED", "MANY"),
    *("_ENDLESS", "_NEVER", "ALL_BELOW", "UNWITHHELD", "_LOWEST_PRIORITY"),
    # What marks a thing: the column of a class without demands, a row that there is not.
    *("_WITHOUT_LIMIT", "_NOWHERE"),
    # kube-scheduler's own numbers, and the API's.
    *("WEIGHTS", "SCORE_OF_FIRST", "_DECIMAL"),
    # How large an array is at first; it grows.
    *("_ROWS_FIRST", "_WIDTH_FIRST", "_FIRST"),
}
"""Names of numbers in other modules of the core that bound nothing."""


def is_number(node):
    """Whether an expression is made of numbers alone, or a dict or tuple of such."""
    match node:
        case ast.Constant(value=value):
            return type(value) in (int, float)
        case ast.UnaryOp(operand=one):
            return is_number(one)
        case ast.BinOp(left=left, right=right):
            return is_number(left) and is_number(right)
        case ast.Tuple(elts=[_, *_] as parts) | ast.Dict(values=[_, *_] as parts):
            return all(map(is_number, parts))
    return False


def numbers_named_in(tree):
    """Return the names that a module, or a class in it, gives to numbers.

    Fields of classes are left out, and members of enums.
    """
    fields = {
        id(one)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for one in node.body
        if isinstance(one, ast.AnnAssign)
    }
    holders = [node for node in ast.walk(tree) if isinstance(node, ast.Module | ast.ClassDef)]
    holders = [
        one
        for one in holders
        if not any("Enum" in ast.unparse(base) for base in getattr(one, "bases", ()))
    ]
    found = []
    for node in [one for holder in holders for one in holder.body if id(one) not in fields]:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if getattr(node, "value", None) is not None and is_number(node.value):
            found += [one.id for one in targets if isinstance(one, ast.Name)]
    return found


def test_every_bound_of_the_core_is_in_its_place():
    """So that two pages tell them all, and a test may set each, whatever their names are."""
    found = []
    for name, path in house.modules("quorate").items():
        place = name.removeprefix("quorate.core.").replace(".", "/")
        if name.startswith("quorate.core.") and place not in OF_BOUNDS:
            tree = house.tree_of(path)
            found += [f"{place}: {one}" for one in numbers_named_in(tree)]
    assert [one for one in found if one.split(": ")[1] not in NO_BOUNDS] == []
    assert NO_BOUNDS - {one.split(": ")[1] for one in found} == set(), "nothing is left of these"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("_FRAMES_TOLD = 4", ["_FRAMES_TOLD"]),
        ("MOST: Final = 2**20", ["MOST"]),
        ("COSTS = {'w': 3000, 'd': 250}", ["COSTS"]),
        ("class A:\n    most = -1\n    field: int = 3", ["most"]),
        ("NAME = 'x'\nIS_ON = True\nOTHER = policy.MOST\nNONE = ()\nA: int", []),
    ],
)
def test_a_number_with_any_name_is_seen(source, found):
    assert numbers_named_in(ast.parse(source)) == found


@pytest.mark.parametrize("package", [*house.PACKAGES, "bench", "simulate", "tools"])
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


STATE = {"lifecycle", "memory"}
"""The two parts of a gang's entry that say how far it is and what the queue knows of it."""
OF_STATE = "quorate.core.cluster.gangs.lifecycle"
CHANGING = {
    *("add", "append", "appendleft", "clear", "difference_update", "discard", "extend", "insert"),
    *("intersection_update", "pop", "popitem", "popleft", "remove", "reverse", "rotate"),
    *("setdefault", "sort", "symmetric_difference_update", "update", "__setitem__", "__delitem__"),
}
"""Methods of collections that change them."""


def parts_of(target):
    """Return the targets of an assignment one by one."""
    if isinstance(target, ast.Tuple | ast.List):
        return [part for one in target.elts for part in parts_of(one)]
    return [target.value if isinstance(target, ast.Starred) else target]


def is_in(roots, node):
    """Whether an expression is, or is part of, an attribute or a local name among ``roots``."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        if isinstance(node, ast.Attribute) and node.attr in roots:
            return True
        node = node.value
    return isinstance(node, ast.Name) and node.id in roots


def names_of(tree, roots):
    """Return ``roots``, and the names that are given to what is part of them."""
    before = set()
    while before != roots:
        before = set(roots)
        for node in ast.walk(tree):
            match node:
                case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
                    pairs = list(zip(names, values, strict=False))
                case ast.Assign(targets=targets, value=value):
                    pairs = [(one, value) for one in targets]
                case ast.NamedExpr(target=name, value=value):
                    pairs = [(name, value)]
                case ast.For(target=name, iter=value) | ast.comprehension(target=name, iter=value):
                    pairs = [(name, value)]
                case _:
                    pairs = []
            new = [
                name.id
                for name, value in pairs
                if isinstance(name, ast.Name) and is_in(roots, value)
            ]
            roots = roots | set(new)
    return roots


def does_write(tree, roots, changing):
    """Whether code writes into what ``roots`` name: assigns, deletes, or calls what changes it."""
    roots = names_of(tree, set(roots))
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=targets) | ast.Delete(targets=targets):
                written = [part for one in targets for part in parts_of(one)]
            case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
                written = [target]
            case ast.Call(func=ast.Attribute(value=of, attr=name)) if name in changing:
                written = [ast.Attribute(of, name)]
            case ast.Call(func=ast.Name(id="setattr" | "delattr"), args=[of, *_]):
                written = [ast.Attribute(of, "")]
            case ast.Call(func=ast.Attribute(attr="__setattr__" | "__delattr__"), args=[of, *more]):
                written = [ast.Attribute(of, "")]
                if len(more) > 1 and isinstance(more[0], ast.Constant) and more[0].value in STATE:
                    return True
            case _:
                written = []
        if any(is_in(roots, one) for one in written if not isinstance(one, ast.Name)):
            return True
    return False


@functools.cache
def changing_methods():
    """Return the names of methods that change what they belong to: of collections, of the state."""
    tree = house.tree_of(house.modules("quorate")[OF_STATE])
    methods = [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)]
    own = {one.name for one in methods if does_write(one, {"self"}, CHANGING)}
    return CHANGING | own - {"__init__"}


def test_a_gang_s_state_is_written_by_news_by_time_and_by_the_one_door():
    """Planning reads it. ``rebuilding`` and the scheduler restore it after a defect."""
    changing = changing_methods()
    assert {"become_quorate", "begin", "end"} <= changing
    writers = set()
    for name, path in house.modules("quorate").items():
        tree = house.tree_of(path)
        parts = [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)]
        if any(does_write(one, STATE, changing) for one in parts):
            writers.add(name)
    rooms = ("quorate.core.cluster.", "quorate.core.lifecycle.")
    doors = {"quorate.core.turn.applying", "quorate.core.turn.rebuilding", "quorate.core.scheduler"}
    assert {one for one in writers if not one.startswith(rooms)} <= doors
    assert "quorate.core.lifecycle.attempts" in writers


@pytest.mark.parametrize(
    "line",
    [
        "gang.lifecycle.attempt = None",
        "gang.memory = replace(gang.memory, failures=0)",
        "gang.memory.failures += 1",
        "gang.memory.not_before_s: float = 0.0",
        "first, gang.memory.failed = True, True",
        "del gang.memory.avoid['n0']",
        "gang.memory.avoid['n0'] = 1.0",
        "gang.memory.avoid.update(n0=1.0)",
        "gang.lifecycle.attempt.open.discard('uid')",
        "gang.memory.aside.end()",
        "setattr(gang.memory, 'failures', 0)",
        "object.__setattr__(gang.memory, 'failures', 0)",
        "object.__setattr__(gang, 'memory', None)",
        "memory = gang.memory; memory.failures = 0",
        "memory, life = gang.memory, gang.lifecycle; life.attempt = None",
        "(memory := gang.memory).failures; memory.failures = 0",
    ],
)
def test_each_way_to_write_a_gang_s_state_is_seen(line):
    assert does_write(ast.parse(line), STATE, changing_methods())


@pytest.mark.parametrize(
    "line",
    [
        "failures = gang.memory.failures",
        "avoid = dict(gang.memory.avoid); avoid['n0'] = 1.0",
        "gang.lifecycle.attempt.open.copy()",
        "memory = Memory(); memory.size",
        "found.append(gang.memory)",
    ],
)
def test_reading_it_is_no_writing(line):
    assert not does_write(ast.parse(line), STATE, changing_methods())
