"""The clock that deadlines are compared by."""

from quorate.shell.process.clock import SteadyClock


class Machine:
    """A machine whose wall clock somebody may set."""

    passed_s = 0.0
    set_by_s = 0.0

    def now_s(self):
        return 1000.0 + self.passed_s + self.set_by_s

    def monotonic_s(self):
        return self.passed_s


def test_a_steady_clock_goes_on_when_the_wall_clock_is_set_back():
    machine = Machine()
    steady = SteadyClock(machine)
    machine.passed_s, machine.set_by_s = 5.0, -3600.0
    assert steady.now_s() == 1005.0
    assert steady.monotonic_s() == 5.0
    assert steady.wall_s() == 1005.0 - 3600.0
