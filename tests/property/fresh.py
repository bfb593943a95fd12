"""Properties that draw other examples in each run."""

from collections.abc import Callable

from hypothesis import HealthCheck, seed, settings

from tests.property.seeds import SEED


def fresh(examples: int) -> Callable[[Callable], Callable]:
    """Return a decorator of a property: so many examples; a failure prints what it drew.

    ``QUORATE_SEED`` draws those of another run again.
    """
    each_run = settings(
        max_examples=examples,
        derandomize=False,  # which hypothesis would have it where CI is set
        print_blob=True,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example],
    )
    return lambda test: seed(SEED)(each_run(test))
