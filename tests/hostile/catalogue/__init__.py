"""What a tenant can write, by hand: one function for each row."""

from tests.hostile.catalogue.devices import DEVICES
from tests.hostile.catalogue.groups import GROUPS
from tests.hostile.catalogue.others import OTHERS
from tests.hostile.catalogue.pods import PODS
from tests.hostile.catalogue.storms import STORMS

CATALOGUE = [*PODS.rows, *DEVICES.rows, *GROUPS.rows, *OTHERS.rows, *STORMS.rows]
