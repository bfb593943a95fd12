"""The scheduler's own table tests, as cases for the oracle. Made on demand; nothing is committed.

``hooking`` copies the plugins with their tests and puts a recorder around each method;
``recording`` runs the tests; ``fixtures`` makes cases of what the recorder wrote::

    for fixture in upstream_tables():
        fixture.plugin, fixture.source, fixture.case, fixture.said
"""

from tools.oracle.tables.fixtures import Fixture
from tools.oracle.tables.recording import upstream_tables

__all__ = ["Fixture", "upstream_tables"]
