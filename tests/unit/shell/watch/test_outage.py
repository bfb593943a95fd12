"""An outage is one line, however many watches it fails and in however many words."""

from structlog.testing import capture_logs

from quorate.shell.watch.outage import Outage


def log_lines(looks):
    """Look once a second at these troubles, and return the lines of the log."""
    outage = Outage()
    with capture_logs() as logs:
        for second, troubles in enumerate(looks):
            outage.look(troubles, 22, float(second))
    return logs


def away(second, count=22):
    return {f"/apis/{n}": f"connection refused, try {second} of {n}" for n in range(count)}


def test_an_api_server_that_is_away_for_a_minute_is_one_line_and_so_is_its_return():
    lines = log_lines([*(away(second) for second in range(60)), {}, {}])
    assert [(line["log_level"], line["event"]) for line in lines] == [
        ("warning", "watches in trouble"),
        ("info", "watches are well again"),
    ]
    assert (lines[0]["watches"], lines[0]["of"], lines[1]["seconds"]) == (22, 22, 60.0)
    assert lines[0]["paths"] == "/apis/0, /apis/1, /apis/10 and 19 more"


def test_a_long_outage_is_a_line_a_minute_at_most():
    assert len(log_lines(away(second) for second in range(600))) == 10


def test_one_that_does_not_change_is_not_told_again():
    assert len(log_lines([away(0)] * 600)) == 1


def test_a_moments_trouble_is_no_news():
    assert log_lines([away(0), {}, {}, away(0), {}]) == []


def test_it_says_what_most_of_them_say_and_shows_no_controls():
    troubles = {"/a": "x\x1b[2J", "/b": "x\x1b[2J", "/c": "y"}
    (line,) = log_lines([troubles] * 5)
    assert line["problem"] == "x\\x1b[2J"
