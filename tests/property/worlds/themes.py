"""Themes: each has a weight, moves that it adds to those of all worlds, and a taste in pods."""

from __future__ import annotations

import msgspec

BASE = {
    "decide": 5.0,
    "answer": 5.0,
    "answer_all": 0.7,
    "work": 2.0,
    "news": 1.0,
    "members": 4.0,
    "whole_gang": 1.5,
    "single": 1.0,
    "delete": 1.0,
    "delete_bound": 1.0,
    "terminate": 0.5,
    "end": 0.7,
    "spec": 0.8,
    "drop_spec": 0.15,
    "ungate": 0.4,
    "pause": 0.3,
    "foreign": 0.3,
    "node": 0.5,
    "stale": 0.3,
}
"""Moves of all worlds, and how often."""


class Theme(msgspec.Struct):
    """What some worlds are about."""

    weight: float = 1.0
    moves: dict[str, float] = {}
    taste: dict[str, object] = {}
    begins: tuple[str, ...] = ()
    """Moves before all others, after the first nodes and objects."""
    nodes: tuple[int, ...] = (2, 3, 4, 6)
    members: tuple[int, ...] = (3, 4)
    length: tuple[int, ...] = (15, 30, 60, 110)
    nudges: tuple[int, ...] = (0, 1, 3)
    """How often, at rest, a move or two follow, and another rest."""
    nudged_by: dict[str, float] = {}
    """Those moves; of all the theme's if none are named."""
    gates: float = 0.1
    faults: float = 0.7
    lags: float = 0.15
    """How often the watch tells of things later than they are."""
    few: float = 0.2
    """How often bounds are small: of a plan, and of what is kept and counted."""


_NODES = {
    "node": 1.5,
    "lose_node": 0.7,
    "flap": 1.0,
    "relabel_node": 1.5,
    "drop_label": 0.7,
    "retaint": 1.0,
    "cordon": 0.7,
    "scale_node": 1.0,
}
_KUBE = {"kube_single": 5.0, "budget": 0.6, "nominate": 0.2}
_RULES = {"terms": 0.5, "selector": 0.2, "ports": 0.1, "required": 0.1}
_FULL = {"cpu": (1, 1, 1, 2), "node_cpu": (1, 2, 2), "memory": 0.0, "gpu": 0.0, "cordons": 0.03}

THEMES = {
    "gangs": Theme(
        2.0, {"odd_member": 0.4, "owner": 0.4, "served": 0.3, "misnamed": 0.5}, gates=0.25
    ),
    "life": Theme(
        2.0,
        {"refuse": 1.5, "restart_gang": 0.8, "replace_lost": 1.5, "end": 1.5, "owner": 0.5},
    ),
    "kube": Theme(2.0, _KUBE | {"kube_single": 8.0, "members": 1.0, "label": 0.4}),
    "kube nodes": Theme(1.5, _KUBE | _NODES, {"cordons": 0.05}),
    "kube rules": Theme(
        1.5,
        _KUBE | {"label": 0.5, "namespace": 0.3, "relabel_node": 0.7, "drop_label": 0.4},
        _RULES,
    ),
    "rules": Theme(
        2.0, {"label": 0.6, "namespace": 0.5, "relabel_node": 0.5}, _RULES | {"terms": 0.8}
    ),
    "full": Theme(
        2.5,
        _NODES | {"label": 0.4, "namespace": 0.2, "foreign": 1.0, "kube_single": 1.0},
        _RULES | _FULL,
        nudges=(1, 3, 6),
        nudged_by=_NODES | {"label": 1.0, "delete_bound": 1.0, "end": 0.5, "namespace": 0.5},
    ),
    "tied": Theme(
        3.0,
        {"label": 0.3, "kube_single": 2.0, "single": 3.0, "answer_all": 3.0}
        | {"node": 0.0, "delete": 0.3, "delete_bound": 0.3, "whole_gang": 3.0},
        _FULL
        | {"tied": 0.8, "terms": 0.05, "selector": 0.05, "taints": 0.05, "tolerates": 0.1}
        | {"pool": 3, "alike": 0.8, "zoned": 0.97, "node_cpu": (1, 2, 4), "cpu": (1,)}
        | {"node_pods": (110,)},
        nodes=(2, 3, 4),
        length=(10, 20, 40),
        nudges=(3, 6, 9),
        nudged_by=_NODES | {"label": 1.0, "delete_bound": 0.7, "terminate": 0.5, "namespace": 0.3},
    ),
    "nodes": Theme(1.5, _NODES | {"restart": 0.1}),
    "volumes": Theme(
        2.0,
        {
            "bind_claims": 4.0,
            "work": 4.0,
            "claim": 1.0,
            "volume": 0.8,
            "lose_volume": 0.3,
            "limit": 0.6,
            "storage_class": 0.3,
            "relabel_node": 0.3,
            "lose_node": 0.2,
        },
        {"volumes": 0.6, "terms": 0.05},
        begins=("begin_storage",),
    ),
    "kube volumes": Theme(
        1.0,
        _KUBE | {"bind_claims": 4.0, "work": 4.0, "claim": 1.0, "volume": 0.8, "limit": 0.6},
        {"volumes": 0.6},
        begins=("begin_storage",),
    ),
    "devices": Theme(
        2.0,
        {
            "work": 4.0,
            "device_slice": 1.0,
            "device_class": 0.4,
            "device_claim": 1.2,
            "tidy_claims": 1.0,
            "relabel_node": 0.2,
            "lose_node": 0.3,
        },
        {"devices": 0.6, "extended": 0.15, "terms": 0.03},
        begins=("begin_devices",),
    ),
    "kube devices": Theme(
        1.0,
        _KUBE | {"work": 4.0, "device_slice": 0.8, "device_claim": 1.2, "tidy_claims": 1.0},
        {"devices": 0.5, "extended": 0.2},
        begins=("begin_devices",),
    ),
    "restarts": Theme(
        2.0,
        {"restart": 1.2, "renew": 1.0, "late_binds": 0.8, "refuse": 0.4, "replace_lost": 0.5},
        faults=0.9,
    ),
    "moved": Theme(2.0, {"relabel": 2.0, "restart": 0.3, "renew": 0.3, "label": 0.3}),
    "rebuilt": Theme(
        1.0,
        {"rebuild": 2.0, "relabel": 2.0, "foreign": 1.0, "end": 1.5, "restart_gang": 0.5}
        | {"refuse": 0.5, "delete_bound": 2.0, "kube_single": 0.5},
        faults=0.9,
        lags=0.3,
    ),
    "rebuilt devices": Theme(
        0.7,
        {"rebuild": 5.0, "work": 9.0, "decide": 9.0, "whole_gang": 3.0, "single": 5.0}
        | {"news": 0.4, "delete": 0.2, "delete_bound": 0.2, "terminate": 0.1, "end": 0.1},
        {"devices": 0.9, "terms": 0.0, "taints": 0.0, "gpu": 0.0, "memory": 0.0},
        begins=("begin_devices",),
        lags=0.8,
    ),
    "rivals": Theme(
        1.0,
        {"kube_single": 8.0, "foreign": 2.0, "bind_foreign": 4.0, "delete": 2.0, "decide": 9.0}
        | {"work": 4.0, "members": 0.2, "whole_gang": 0.2, "spec": 0.0, "drop_spec": 0.0}
        | {"ungate": 0.0, "stale": 0.1, "node": 0.1, "terminate": 0.1, "answer_all": 2.0},
        _FULL | {"terms": 0.35, "selector": 0.0, "cordons": 0.0, "taints": 0.0, "node_cpu": (1, 2)},
        begins=("fill_nodes",),
        nodes=(1, 2, 2, 3),
        length=(10, 15, 30),
        nudges=(1, 3, 6),
        nudged_by={"kube_single": 2.0, "foreign": 1.0, "bind_foreign": 2.0, "delete": 1.0}
        | {"decide": 2.0, "work": 2.0},
        faults=0.9,
    ),
    "others": Theme(
        1.0,
        {"foreign": 3.0, "bind_foreign": 2.5, "resize": 1.0, "scale_node": 0.5, "kube_single": 2.5},
        {"terms": 0.25},
    ),
    "resources": Theme(1.0, _NODES, {"odd": 0.6, "kinds": 12}),
    "wide": Theme(
        0.6,
        _NODES | {"foreign": 1.0, "kube_single": 1.0, "label": 0.3},
        _RULES | _FULL,
        begins=("fill_nodes",),
        nodes=(12, 24, 40),
        members=(4, 8),
        length=(5, 15),
        nudges=(2, 5),
    ),
    "all": Theme(
        1.5,
        _NODES
        | _KUBE
        | {
            "bind_claims": 2.0,
            "work": 4.0,
            "claim": 0.5,
            "volume": 0.4,
            "limit": 0.3,
            "device_slice": 0.4,
            "device_claim": 0.6,
            "tidy_claims": 0.6,
            "restart": 0.3,
            "renew": 0.3,
            "rebuild": 0.2,
            "late_binds": 0.3,
            "refuse": 0.5,
            "restart_gang": 0.3,
            "replace_lost": 0.5,
            "relabel": 0.4,
            "label": 0.4,
            "namespace": 0.3,
            "bind_foreign": 0.3,
            "resize": 0.3,
            "odd_member": 0.1,
            "owner": 0.3,
            "served": 0.1,
        },
        {"volumes": 0.15, "devices": 0.15, "extended": 0.05, "terms": 0.25},
        begins=("begin_storage", "begin_devices"),
        few=0.3,
    ),
}
