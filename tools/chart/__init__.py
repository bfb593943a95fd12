"""The Helm chart's templates, made from the templates of ``quorate manifests``.

In: ``src/quorate/deploy``, the table of what values change (``knobs``), and the alert rules of
docs/operators/alerts.md. Out: the files in
``chart/quorate/templates`` and ``files``. Called by people (``python -m tools.chart --write``), and
by a test that fails when what is there is not what would be made.
"""

from tools.chart.making import CHART, made, stale

__all__ = ["CHART", "made", "stale"]
