"""Command lines of the control plane's components: what is not the default, and why.

In: ports, files. Out: lists of arguments. Called by ``cluster``; nothing here touches the machine.
"""

from pathlib import Path

from tools.controlplane import versions
from tools.controlplane.credentials import Credentials

# Each gate and the API group are alpha: the native gang API is off without all of them.
FEATURE_GATES = (
    "GenericWorkload=true,GangScheduling=true,TopologyAwareWorkloadScheduling=true,"
    "WorkloadAwarePreemption=true"
)
KWOK_CONFIG = Path(__file__).with_name("kwok.yaml")


def etcd(data: Path, client_port: int, peer_port: int) -> list[str]:
    """Give the command line of etcd, which forgoes fsync: the data need not outlive the machine."""
    client, peer = f"http://127.0.0.1:{client_port}", f"http://127.0.0.1:{peer_port}"
    return [
        str(versions.binary("etcd")),
        "--name=quorate",
        f"--data-dir={data}",
        "--unsafe-no-fsync",
        "--log-level=warn",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=quorate={peer}",
        "--quota-backend-bytes=8589934592",
    ]


def kube_apiserver(
    credentials: Credentials, port: int, etcd_port: int, client_ca: Path | None = None
) -> list[str]:
    """Give the command line of kube-apiserver; it signs its own serving certificate."""
    key = credentials.service_account_key
    return [
        str(versions.binary("kube-apiserver")),
        f"--etcd-servers=http://127.0.0.1:{etcd_port}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={credentials.certificate_dir}",
        # Nothing is routed: no endpoints of the service "kubernetes", which refuse loopback. The
        # address is for documentation (RFC 5737); without it a machine without network fails.
        "--endpoint-reconciler-type=none",
        "--advertise-address=192.0.2.1",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--authorization-mode=Node,RBAC",
        f"--token-auth-file={credentials.token_file}",
        f"--service-account-issuer=https://127.0.0.1:{port}",
        f"--service-account-key-file={key}",
        f"--service-account-signing-key-file={key}",
        "--runtime-config=scheduling.k8s.io/v1alpha2=true",
        f"--feature-gates={FEATURE_GATES}",
        # It taints each new node until the controller manager looks; ours are born ready.
        "--disable-admission-plugins=TaintNodesByCondition",
        "--allow-privileged=true",
        # Ends the watches when it stops; without this it waits for them for a minute.
        "--shutdown-watch-termination-grace-period=1s",
        *([f"--client-ca-file={client_ca}"] if client_ca else []),
    ]


def kube_controller_manager(credentials: Credentials, kubeconfig: Path) -> list[str]:
    """Give the command line of kube-controller-manager, fast enough for tests."""
    return [
        str(versions.binary("kube-controller-manager")),
        f"--kubeconfig={kubeconfig}",
        "--secure-port=0",
        "--leader-elect=false",
        f"--feature-gates={FEATURE_GATES}",
        "--use-service-account-credentials",
        f"--root-ca-file={credentials.ca}",
        # For Secrets with a token of a ServiceAccount.
        f"--service-account-private-key-file={credentials.service_account_key}",
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
        "--controllers=*,-ttl-controller",  # it annotates every node when their number grows
        "--concurrent-job-syncs=20",
        "--concurrent-replicaset-syncs=20",
        "--concurrent-statefulset-syncs=20",
        "--concurrent-namespace-syncs=20",
        # Fake nodes send no heartbeats, which would be writes that blur a measurement.
        "--node-monitor-grace-period=24h",
        "--node-startup-grace-period=24h",
    ]


def kube_scheduler(config: Path, port: int, certificate_dir: Path) -> list[str]:
    """Give the command line of kube-scheduler; metrics and health are open to everybody."""
    return [
        str(versions.binary("kube-scheduler")),
        f"--config={config}",
        f"--feature-gates={FEATURE_GATES}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={certificate_dir}",
        "--authorization-always-allow-paths=/healthz,/livez,/readyz,/metrics,/metrics/resources",
    ]


def kwok(kubeconfig: Path) -> list[str]:
    """Give the command line of kwok, which plays the kubelet of every node marked as fake."""
    return [
        str(versions.binary("kwok")),
        f"--kubeconfig={kubeconfig}",
        f"--config={KWOK_CONFIG}",
        "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
        "--node-lease-duration-seconds=0",  # no leases: see node-monitor-grace-period
    ]
