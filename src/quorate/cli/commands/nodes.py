"""``quorate nodes``: what is free on which node, and who has the rest, like Slurm's ``sinfo``.

Out: sums and a map on standard output, or data, and an exit code: 0 all is well, 1 no node has the
labels, 2 the call, the cluster or the configuration is at fault.
"""

from __future__ import annotations

from quorate.cli.asking.selection import SelectionError, parse_selector
from quorate.cli.commands.look import Access, Wanted, look
from quorate.cli.show import node_map, output
from quorate.cli.show.node_usage import usage_list, usages
from quorate.cli.show.survey_result import SurveyResult


def nodes(access: Access, selector: str, form: str) -> int:
    """Print the nodes with these labels; return the exit code."""
    try:
        wanted = parse_selector(selector) if selector else ()
    except SelectionError as error:
        return output.error(str(error))

    def show(result: SurveyResult) -> int:
        labels = result.scheduler.policy.life_cycle
        found = usages(result.scheduler.cluster, wanted, labels)
        if form in ("json", "yaml"):
            output.print_data(usage_list(found), form)
        elif found:
            node_map.print_map(found, wide=form == "wide")
        else:
            such = f" with labels {selector}" if selector else ""
            output.say(f"No nodes{such} found.", err=True)
        return 0

    return look(access, Wanted(lambda _core, _where: [], with_nodes=True), show)
