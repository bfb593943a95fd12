"""Properties, and what they draw from: the seed of the run."""

from collections.abc import Callable

from hypothesis import HealthCheck, seed, settings

from tests.property.seeds import SEED, times


def each_run(examples: int) -> settings:
    """Return settings for ``times`` so many examples; a failure prints what it drew."""
    return settings(
        max_examples=times(examples),
        derandomize=False,  # which hypothesis would have it where CI is set
        print_blob=True,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example],
    )


def fresh(examples: int) -> Callable[[Callable], Callable]:
    """Return a decorator of a property: so many examples, drawn from the seed of the run.

    ``QUORATE_SEED`` draws those of another run again.
    """
    return lambda test: seed(SEED)(each_run(examples)(test))
