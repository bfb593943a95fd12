"""State in SQLite: it survives kill -9, and a file that is damaged is reported and left alone."""

import random
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from pocketkube.store.durable import DataError, SqliteBackend
from pocketkube.store.store import Store

FILE = "state.sqlite3"


def pod(name: str, **fields: object) -> dict:
    return {"metadata": {"name": name, "namespace": "default"}, **fields}


def filled(path: Path, count: int = 40) -> dict[str, bytes]:
    """Write objects, replace some, remove some; give what is there."""
    store = Store(SqliteBackend(path))
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
    store = Store(SqliteBackend(tmp_path / FILE))
    assert content_of(store) == content
    assert store.get("nodes", "", "n0").object["spec"] == {"text": "ä\n"}
    store.close()


def test_a_deletion_counts_as_a_revision_after_a_restart(tmp_path):
    store = Store(SqliteBackend(tmp_path / FILE))
    store.put("pods", pod("a"))
    store.remove("pods", "default", "a")
    revision = store.revision
    store.close()
    again = Store(SqliteBackend(tmp_path / FILE))
    assert again.revision == revision
    assert again.count("pods") == 0
    again.close()


WRITER = """
import sys
from pathlib import Path
from pocketkube.store.durable import SqliteBackend
from pocketkube.store.store import Store
store = Store(SqliteBackend(Path(sys.argv[1])))
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
        store = Store(SqliteBackend(tmp_path / FILE))
        assert store.revision >= last
        revisions = [entry.revision for entry in store.entries("pods")]
        assert len(set(revisions)) == len(revisions) > 50
        assert all(entry.object["text"] == "x" * 2000 for entry in store.entries("pods"))
        store.close()


def test_a_second_process_is_refused_and_told_what_to_do(tmp_path):
    backend = SqliteBackend(tmp_path / FILE)
    backend.put("pods", Store().put("pods", pod("a")))
    code = f"""
from pathlib import Path
from pocketkube.store.durable import SqliteBackend, DataError
try:
    SqliteBackend(Path({str(tmp_path / FILE)!r}))
except DataError as error:
    print(error)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == (
        f"{tmp_path} is in use by another cluster. Stop that one, or choose another folder with "
        "--data.\n"
    )
    with pytest.raises(DataError, match="is in use by another cluster"):
        SqliteBackend(tmp_path / FILE)
    backend.close()
    SqliteBackend(tmp_path / FILE).close()


def refused(path: Path) -> str:
    """Open a file that cannot be used; give the sentence, and check that no byte changed."""
    before = path.read_bytes()
    with pytest.raises(DataError) as raised:
        SqliteBackend(path)
    assert path.read_bytes() == before
    assert str(path) in str(raised.value)
    assert "left as it is" in str(raised.value)
    return str(raised.value)


def test_an_empty_file_is_reported_as_damaged(tmp_path):
    (tmp_path / FILE).touch()
    assert "is damaged (it is empty)" in refused(tmp_path / FILE)


def test_a_file_that_is_no_database_is_left_alone(tmp_path):
    (tmp_path / FILE).write_text("my notes\n" * 100)
    assert "is not a state of pocketkube" in refused(tmp_path / FILE)


def test_a_database_of_another_program_is_left_alone(tmp_path):
    with sqlite3.connect(tmp_path / FILE) as db:
        db.execute("CREATE TABLE mine (x)")
    db.close()
    assert "is a database of another program" in refused(tmp_path / FILE)


def test_a_file_of_another_format_is_left_alone(tmp_path):
    filled(tmp_path / FILE)
    db = sqlite3.connect(tmp_path / FILE, isolation_level=None)
    db.execute("PRAGMA user_version = 2")
    db.close()
    assert "has format 2; this version of pocketkube reads format 1" in refused(tmp_path / FILE)


def test_an_object_that_somebody_changed_is_reported_by_its_name(tmp_path):
    filled(tmp_path / FILE)
    db = sqlite3.connect(tmp_path / FILE, isolation_level=None)
    db.execute("UPDATE objects SET raw = X'7B' WHERE name = 'p7'")
    db.close()
    assert "(the object pods default p7 is not what was written)" in refused(tmp_path / FILE)


def test_a_file_that_was_cut_off_is_reported_wherever_it_ends(tmp_path):
    filled(tmp_path / FILE)
    whole = (tmp_path / FILE).read_bytes()
    for length in [1, 50, 99, 100, 4096, 8192, len(whole) // 2, len(whole) - 8192, len(whole) - 1]:
        (tmp_path / FILE).write_bytes(whole[:length])
        assert "is damaged" in refused(tmp_path / FILE)


def test_flipped_bytes_are_reported_or_harmless(tmp_path):
    content = filled(tmp_path / FILE)
    whole = (tmp_path / FILE).read_bytes()
    chance = random.Random(5)
    found = 0
    for _ in range(150):
        at = chance.randrange(len(whole))
        flipped = bytearray(whole)
        flipped[at] ^= 1 << chance.randrange(8)
        (tmp_path / FILE).write_bytes(flipped)
        try:
            store = Store(SqliteBackend(tmp_path / FILE))
        except DataError as error:
            found += "left as it is" in str(error)
            assert (tmp_path / FILE).read_bytes() == flipped
        else:  # a byte that holds nothing
            assert content_of(store) == content
            store.close()
    assert found > 40


def test_a_folder_in_the_place_of_the_file_is_reported(tmp_path):
    (tmp_path / FILE).mkdir()
    with pytest.raises(DataError, match="cannot be used: Is a directory"):
        SqliteBackend(tmp_path / FILE)


def test_a_folder_that_is_not_there_is_reported(tmp_path):
    with pytest.raises(DataError, match="cannot be used: No such file or directory"):
        SqliteBackend(tmp_path / "nowhere" / FILE)
