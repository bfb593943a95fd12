"""What kubectl creates through client-go's typed clients, whose bodies are protobuf.

``python -m embedded.tests.clients.typed`` asks a real API server what it makes of them, and writes
``typed_recorded.json``. Every command is a dry run of the server's: nothing stays.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

from embedded.tests.clients.running import Kubectl
from tools.controlplane import Cluster
from tools.controlplane.versions import binary

RECORDED = Path(__file__).with_name("typed_recorded.json")
COMMANDS = (
    "create deployment new --image=nginx:1 --replicas=2 --port=80",
    "create job new --image=busybox -- sleep 1",
    "create cronjob new --image=busybox --schedule=@daily --restart=Never",
    "create configmap new --from-literal=a=b",
    "create secret generic new --from-literal=a=b",
    "create secret docker-registry new --docker-username=a --docker-password=b",
    "create role new --verb=get --resource=pods,deployments.apps",
    "create clusterrole new --verb=get --resource=pods --non-resource-url=/metrics",
    "create clusterrole new --aggregation-rule=a=b",
    "create rolebinding new --role=some --user=somebody --serviceaccount=team:robot",
    "create clusterrolebinding new --clusterrole=some --group=some",
    "create serviceaccount new",
    "create quota new --hard=requests.cpu=1500m,requests.memory=1.5Gi,pods=5",
    "create pdb new --selector=app=web --min-available=50%",
    "create pdb new --selector=app=web --max-unavailable=1",
    "create priorityclass new --value=5 --description=low --preemption-policy=Never",
    "create namespace new",
    "create ingress new --rule=a.example.com/b=svc:80,tls=x --class=c --annotation=a=b",
    "create service clusterip new --tcp=80:8080",
    "create service externalname new --external-name=a.example.com",
    "expose deployment web --name=new --port=80 --target-port=http",
    "run new --image=nginx:1 --port=80 --env=A=B --labels=app=web",
)
_DRAWN = ("uid", "creationTimestamp", "resourceVersion", "managedFields", "namespace")
_DRAWN_OF_SERVICES = ("clusterIP", "clusterIPs")


def answer(kubectl: Kubectl, command: str) -> dict[str, Any]:
    """Return the object that the server would store."""
    line, dashes, rest = command.partition(" -- ")
    text = kubectl(*line.split(), "--dry-run=server", "-o", "json", *f"{dashes}{rest}".split())
    text = re.sub(r"kube-api-access-\w{5}", "kube-api-access-drawn", text)
    text = text.replace(json.loads(text)["metadata"]["uid"], "drawn")  # labels of jobs have it too
    obj: dict[str, Any] = json.loads(text)
    for field in _DRAWN:
        obj["metadata"].pop(field, None)
    for field in _DRAWN_OF_SERVICES:
        obj.get("spec", {}).pop(field, None)
    for port in obj.get("spec", {}).get("ports", ()):
        port.pop("nodePort", None)
    return obj


def main() -> int:
    """Record all commands."""
    with Cluster.start() as cluster:
        kubectl = Kubectl(binary("kubectl"), cluster.kubeconfig, cluster.data_dir, "default")
        kubectl("create", "deployment", "web", "--image=nginx:1")
        answers = {command: answer(kubectl, command) for command in COMMANDS}
    RECORDED.write_text(json.dumps(answers, indent=1, sort_keys=True) + "\n")
    print(f"{RECORDED.name}: {len(answers)} answers")
    return 0


if __name__ == "__main__":
    sys.exit(main())
