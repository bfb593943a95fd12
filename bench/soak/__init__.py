"""Parts of ``bench.soak_large``: a large cluster, its churn, and samples of the scheduler."""
