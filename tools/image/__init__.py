"""The container image, built as an OCI layout without a daemon and without a registry.

In: Debian's packages by apt, Python's by pip from ``requirements-image.lock``, and this checkout.
Out: a folder in the OCI image layout. The same inputs always give the same digest. Called by people
(``make image``) and by tests/image.
"""

from tools.image.building import build

__all__ = ["build"]
