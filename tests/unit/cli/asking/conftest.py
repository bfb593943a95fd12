import pytest

from tests.unit.cli.api_server import kubeconfig
from tools.testing import call


@pytest.fixture(autouse=True)
def no_cluster_of_the_machine(monkeypatch):
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def quorate(cluster, tmp_path, capsys):
    """Run a command line against the module's cluster; its context's namespace is ``team``."""
    config = kubeconfig(tmp_path, cluster.url, namespace="team")

    def run(*args):
        code = call(*args, "--kubeconfig", config)
        return code, *capsys.readouterr()

    return run
