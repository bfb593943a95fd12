"""TLS contexts. In: what a kubeconfig trusts and shows. Out: a context of ``ssl``.

Called by ``credentials``, at the start and whenever a file was renewed.
"""

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from quorate.shell.kube.identity.access import KubeConfigError, Pem, Trust


def context_of(trust: Trust) -> ssl.SSLContext:
    """Return a new context. Raises KubeConfigError: what it is made from cannot be used."""
    context = _trusting(trust.authority)
    # Python 3.13 began to demand extensions that the CAs of many clusters lack, and Go does not.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not trust.is_verified:  # only if the kubeconfig says insecure-skip-tls-verify
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if trust.certificate is not None and trust.key is not None:
        try:
            with _as_file(trust.certificate) as certificate, _as_file(trust.key) as key:
                # A password, though none is needed: else OpenSSL would ask the terminal.
                context.load_cert_chain(certificate, key, password="")
        except (OSError, ssl.SSLError) as error:
            raise KubeConfigError(
                f"{trust.certificate.where}: not a usable client certificate and key ({error}); "
                "renew both"
            ) from error
    return context


def _trusting(authority: Pem | None) -> ssl.SSLContext:
    """Return a context that trusts an authority, or those of the system."""
    if authority is None:
        return ssl.create_default_context()
    try:
        if authority.file:
            return ssl.create_default_context(cafile=authority.file)
        return ssl.create_default_context(cadata=authority.data.decode("ascii"))
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        said = "not text" if isinstance(error, UnicodeDecodeError) else error
        raise KubeConfigError(
            f"{authority.where}: not a usable CA certificate ({said}); correct it"
        ) from None


@contextmanager
def _as_file(pem: Pem) -> Iterator[str]:
    """Give the path of a file that holds it: ``ssl`` takes nothing else. Ours is 0600, and goes."""
    if pem.file:
        yield pem.file
        return
    descriptor, path = tempfile.mkstemp(prefix="quorate-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(pem.data)
        yield path
    finally:
        os.unlink(path)
