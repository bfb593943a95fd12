"""Events are forgotten an hour after they were last written."""

from embedded.tests.unit.controllers.controllers_world import World


def event(world, name):
    about = {"kind": "Pod", "namespace": "default", "name": "p"}
    body = {"metadata": {"name": name}, "involvedObject": about, "reason": "R", "message": "m"}
    world.create("v1", "events", body | {"firstTimestamp": world.time(), "type": "Normal"})


def test_an_event_goes_after_an_hour():
    world = World()
    event(world, "old")
    world.settle(3500)
    event(world, "young")
    assert {"old", "young"} <= set(world.names("events"))
    world.settle(200)
    assert "old" not in world.names("events")
    assert "young" in world.names("events")


def test_an_event_that_is_written_again_lives_an_hour_more():
    world = World()
    event(world, "again")
    world.settle(3000)
    world.patch("events", "again", lambda found: found.update(lastTimestamp=world.time()))
    world.settle(3000)
    assert "again" in world.names("events")
    world.settle(700)
    assert "again" not in world.names("events")
