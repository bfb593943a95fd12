"""The life-cycle of a node: one table of the states, and of where a node goes from each.

Read by ``rules`` (no organization is called like a state), ``components`` (what admission lets the
state's label become), ``reservations`` (who may use the node), and the page that draws it. States
and steps are those that CoreWeave documents.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from quorate.core.model.life_cycle import PRODUCTION

TRIAGE: Final = "triage"

STEPS: Final[Mapping[str, Mapping[str, str]]] = {
    "onboard": {"seatrial": ""},
    "seatrial": {"zap": ""},
    "zap": {"test": "", "zap-fail": "fail"},
    "zap-fail": {},
    "test": {PRODUCTION: "", TRIAGE: "fail"},
    PRODUCTION: {TRIAGE: "", "production-reboot": "solved by reboot"},
    "production-reboot": {PRODUCTION: "", TRIAGE: "fail"},
    TRIAGE: {"rma": "return to vendor", "debug": ""},
    "rma": {"onboard": "return to fleet"},
    "debug": {"onboard": "return to fleet"},
}
"""Each state, the states that follow it, and what a step is called where it has a name."""


def diagram() -> str:
    """Return the table as a diagram of Mermaid."""
    lines = ["graph LR"]
    for state, following in STEPS.items():
        for after, called in following.items():
            lines.append(f"  {state} -->{f'|{called}|' if called else ''} {after}")
    return "\n".join(lines)
