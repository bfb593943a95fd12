"""When a node counts as given to and fro, and until when it is held."""

from quorate.cks.hold import QUIET_S, QUIET_S_MAX, SAME_MAX, SAME_S, Asked, Hold


def test_the_same_reservation_time_and_again_is_too_often_and_forgotten_after_a_while():
    hold = Hold()
    for time in range(SAME_MAX):
        assert not hold.is_too_often("acme", float(time))
        hold.wrote("acme", float(time))
        hold.wrote("triage", float(time))
    assert hold.is_too_often("acme", 5.0)
    assert not hold.is_too_often("acme", SAME_S), "the first was too long ago"


def test_the_same_wish_time_and_again_holds_a_node():
    hold = Hold()
    wishes = [Asked("production", owner) for owner in ("acme", "zeta")] * SAME_MAX
    for time, wish in enumerate(wishes):
        hold.saw(wish, float(time))
        assert hold.until_s < time, "not yet"
    hold.saw(Asked("production", "acme"), 20.0)
    assert hold.until_s == 20.0 + QUIET_S


def test_a_walk_through_the_life_cycle_is_not_too_often():
    hold = Hold()
    for time, state in enumerate(("onboard", "seatrial", "zap", "test", "control-plane", "acme")):
        hold.saw(Asked(state, "acme"), float(time))
        assert not hold.is_too_often(state, float(time))
        hold.wrote(state, float(time))
    assert hold.until_s < 0.0


def test_a_held_node_is_held_until_its_labels_ask_for_the_same_for_a_while():
    hold = Hold()
    hold.saw(Asked("production", "acme"), 0.0)
    assert hold.until_s < 0.0
    hold.begin(10.0)
    hold.saw(Asked("production", "acme"), 20.0)
    assert hold.until_s == 10.0 + QUIET_S
    hold.saw(Asked("triage", "acme"), 30.0)
    assert hold.until_s == 30.0 + QUIET_S


def test_who_is_held_again_is_held_for_twice_as_long_and_less_after_a_long_time():
    hold = Hold()
    now_s, held_s = 0.0, []
    for _ in range(8):
        hold.begin(now_s)
        held_s.append(hold.until_s - now_s)
        now_s = hold.until_s + 10.0
    assert held_s == [60.0, 120.0, 240.0, 480.0, 960.0, 1920.0, QUIET_S_MAX, QUIET_S_MAX]
    hold.begin(hold.until_s + QUIET_S_MAX)
    assert hold.quiet_s == QUIET_S


def test_a_held_node_is_written_to_at_once_and_then_rarely():
    hold = Hold()
    hold.wrote("acme", 99.0)
    hold.begin(100.0)
    assert hold.wait_s(100.0) == 0.0
    hold.wrote("triage", 100.0)
    assert hold.wait_s(101.0) == 9.0
    assert hold.wait_s(110.0) == 0.0


def test_for_whom_a_node_was_desired_is_remembered():
    hold = Hold()
    hold.saw(Asked("production", "acme"), 0.0)
    hold.saw(Asked("production", None), 1.0)
    assert hold.desired == "acme"
