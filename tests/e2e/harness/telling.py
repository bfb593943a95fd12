"""Where people look for the reason of a gang that waits."""

from tools.testing import wait_for


def is_told_everywhere(world, name: str, reason: str, text: str, *, condition: str = "") -> dict:
    """Look for the reason in condition, Event, command line and metrics; return the explanation."""
    world.wait_condition(text)
    explanation = world.why(name)
    sentence = explanation["message"]
    assert text in sentence
    assert (explanation["state"], explanation["reason"]) == ("Waiting", reason)
    world.wait_condition(sentence)
    assert (condition or reason, sentence) in world.conditions()
    assert world.wait_event("FailedScheduling", sentence) == sentence
    assert explanation["hint"]
    for metric in ("quorate_waiting_gangs", "quorate_misconfigured_gangs"):
        wait_for(
            lambda metric=metric: world.quorate.metric(metric, reason=reason) >= 1,
            f"{metric} counts {reason}",
        )
    assert world.bound() == 0
    return explanation
