"""What the tests of server-side apply share: shapes, and applies as one line."""

from pocketkube.patch.apply.apply import apply
from pocketkube.patch.apply.field_paths import named
from pocketkube.patch.apply.managed_fields import track_update
from pocketkube.schema.document import Document
from pocketkube.schema.shape import Merge, Shape, Type

NOW = "2026-11-21T12:00:00Z"
LATER = "2026-11-21T12:00:09Z"
CONFIG_MAP = Document.load().shape("io.k8s.api.core.v1.ConfigMap")
DEPLOYMENT = Document.load().shape("io.k8s.api.apps.v1.Deployment")
TEXT = Shape(type=Type.STRING)
NUMBER = Shape(type=Type.INTEGER)


def a_list(merge, item, *keys):
    return Shape(type=Type.LIST, merge=merge, item=item, keys=keys)


def an_object(merge=Merge.GRANULAR, **fields):
    return Shape(type=Type.OBJECT, merge=merge, fields=fields)


ITEM = an_object(
    k=TEXT, j=Shape(type=Type.INTEGER, default=1, has_default=True), v=TEXT, deep=an_object(z=TEXT)
)
THING = an_object(
    apiVersion=TEXT,
    kind=TEXT,
    metadata=Document.load().shape("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"),
    spec=an_object(
        n=NUMBER,
        a_set=a_list(Merge.SET, TEXT),
        atom=a_list(Merge.ATOMIC, TEXT),
        whole=an_object(Merge.ATOMIC, x=TEXT, y=TEXT),
        by_key=Shape(type=Type.MAP, merge=Merge.GRANULAR, item=an_object(p=TEXT)),
        items=a_list(Merge.MAP, ITEM, "k", "j"),
        any=Shape(type=Type.ANY),
    ),
    status=an_object(a=TEXT, b=TEXT),
)
"""What a CRD could look like: each type of list and map once."""


def config_map(data, **metadata):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", **metadata},
        "data": data,
    }


def thing(**spec):
    return {"apiVersion": "q.test/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": spec}


def applied(live, obj, manager, *, force=False, now=NOW, **more):
    """Apply to the type that the object's kind tells."""
    shape = {"ConfigMap": CONFIG_MAP, "Deployment": DEPLOYMENT, "Thing": THING}[obj["kind"]]
    version = obj["apiVersion"]
    options = {"manager": manager, "force": force, "api_version": version, "now": now, **more}
    return apply(live, obj, shape, **options)


def updated(before, after, manager, *, now=NOW, **more):
    """Track an update of an object of the type that its kind tells."""
    shape = {"ConfigMap": CONFIG_MAP, "Deployment": DEPLOYMENT, "Thing": THING}[after["kind"]]
    options = {"manager": manager, "api_version": after["apiVersion"], "now": now, **more}
    return track_update(before, after, shape, **options)


def owners(obj):
    """Return FieldsV1 by manager and operation."""
    entries = obj["metadata"].get("managedFields", [])
    return {(entry["manager"], entry["operation"]): entry["fieldsV1"] for entry in entries}


STATUS = (named("status"),)
