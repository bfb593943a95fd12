"""State in a file: it survives kill -9, and a file that is damaged is reported and left alone."""

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pocketkube.store import journal
from pocketkube.store.journal import DataError, Journal, Key
from pocketkube.store.store import Store

FILE = "state.journal"


def pod(name: str, **fields: object) -> dict:
    return {"metadata": {"name": name, "namespace": "default"}, **fields}


def filled(path: Path, count: int = 40) -> dict[str, bytes]:
    """Write objects, replace some, remove some; give what is there."""
    store = Store(Journal(path))
    for i in range(count):
        store.put("pods", pod(f"p{i}", text="x" * 3000))
    store.put("nodes", {"metadata": {"name": "n0"}, "spec": {"text": "ä\n"}})
    for i in range(0, count, 5):
        store.put("pods", pod(f"p{i}", text="changed"))
    for i in range(1, count, 5):
        store.remove("pods", "default", f"p{i}")
    content = content_of(store)
    store.close()
    return content


def content_of(store: Store) -> dict[str, bytes]:
    entries = [(bucket, entry) for bucket in store.buckets() for entry in store.entries(bucket)]
    return {f"{b} {e.namespace}/{e.name} {e.revision}": e.raw for b, e in entries}


def test_objects_and_the_revision_are_there_after_a_restart(tmp_path):
    content = filled(tmp_path / FILE)
    store = Store(Journal(tmp_path / FILE))
    assert content_of(store) == content
    assert store.get("nodes", "", "n0").object["spec"] == {"text": "ä\n"}
    store.close()


def test_a_deletion_counts_as_a_revision_after_a_restart(tmp_path):
    store = Store(Journal(tmp_path / FILE))
    store.put("pods", pod("a"))
    store.remove("pods", "default", "a")
    revision = store.revision
    store.close()
    again = Store(Journal(tmp_path / FILE))
    assert again.revision == revision
    assert again.count("pods") == 0
    again.close()


WRITER = """
import sys
from pathlib import Path
from pocketkube.store.journal import Journal
from pocketkube.store.store import Store
store = Store(Journal(Path(sys.argv[1])))
for i in range(1_000_000):
    name = f"p{i % 97}"
    obj = {"metadata": {"name": name, "namespace": "default"}, "i": i, "text": "x" * 2000}
    entry = store.put("pods", obj)
    if i % 7 == 3:
        entry = store.remove("pods", "default", name)
    print(entry.revision, flush=True)
"""


def test_nothing_that_was_written_is_lost_by_kill_9(tmp_path):
    chance = random.Random(3)
    last = 0
    for _ in range(4):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path / FILE)], stdout=subprocess.PIPE, text=True
        )
        for _ in range(chance.randint(200, 900)):
            last = int(writer.stdout.readline())
        writer.send_signal(signal.SIGKILL)
        said = writer.stdout.read().split("\n")[:-1]  # the last line may be cut off
        writer.stdout.close()
        writer.wait()
        last = int(said[-1]) if said else last
        store = Store(Journal(tmp_path / FILE))
        assert store.revision >= last
        revisions = [entry.revision for entry in store.entries("pods")]
        assert len(set(revisions)) == len(revisions) > 50
        assert all(entry.object["text"] == "x" * 2000 for entry in store.entries("pods"))
        store.close()


def test_a_second_process_is_refused_and_told_what_to_do(tmp_path):
    backend = Journal(tmp_path / FILE)
    backend.write(Key("pods", "default", "a"), 2, b"{}")
    code = f"""
from pathlib import Path
from pocketkube.store.journal import Journal, DataError
try:
    Journal(Path({str(tmp_path / FILE)!r}))
except DataError as error:
    print(error)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == (
        f"{tmp_path} is in use by another cluster. Stop that one, or choose another folder with "
        "--data.\n"
    )
    with pytest.raises(DataError, match="is in use by another cluster"):
        Journal(tmp_path / FILE)
    backend.close()
    Journal(tmp_path / FILE).close()


def refused(path: Path) -> str:
    """Open a file that cannot be used; give the sentence, and check that no byte changed."""
    before = path.read_bytes()
    with pytest.raises(DataError) as raised:
        Journal(path)
    assert path.read_bytes() == before
    assert str(path) in str(raised.value)
    assert "left as it is" in str(raised.value)
    return str(raised.value)


def test_an_object_that_somebody_changed_is_reported_by_its_line(tmp_path):
    filled(tmp_path / FILE)
    whole = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(whole.replace(b"changed", b"CHANGED", 1))
    assert "is not what was written" in refused(tmp_path / FILE)


def test_what_is_out_of_date_goes_at_the_next_start_and_when_the_file_has_grown(
    tmp_path, monkeypatch
):
    content = filled(tmp_path / FILE)
    size = (tmp_path / FILE).stat().st_size
    store = Store(Journal(tmp_path / FILE))
    assert (tmp_path / FILE).stat().st_size < size
    store.close()
    monkeypatch.setattr(journal, "_REWRITE_BYTES", 10_000)
    store = Store(Journal(tmp_path / FILE))
    for _ in range(300):
        store.put("pods", pod("p0", text="x" * 3000))
    assert (tmp_path / FILE).stat().st_size < 4 * size
    store.remove("pods", "default", "p0")
    now = content_of(store)
    assert len(now) == len(content) - 1
    store.close()
    again = Store(Journal(tmp_path / FILE))
    assert (again.revision, content_of(again)) == (store.revision, now)
    again.close()


def test_a_write_that_was_cut_off_is_dropped_and_those_before_it_are_there(tmp_path):
    content = filled(tmp_path / FILE)
    whole = (tmp_path / FILE).read_bytes()
    removal_bytes = len(whole.splitlines(keepends=True)[-1])
    for cut_bytes in (1, 10, removal_bytes - 1):
        (tmp_path / FILE).write_bytes(whole[:-cut_bytes])
        store = Store(Journal(tmp_path / FILE))
        assert content.items() <= content_of(store).items()
        assert store.count("pods") == 33, "one that had been removed is back"
        store.close()
