"""The structure that CRDs give: read, checked as a real API server does, and applied to values."""
