"""Devices on nodes, and the claims of one test's namespace."""

DRIVER = "gpu.example.com"
RESOURCE = "example.com/gpu"
API = "/apis/resource.k8s.io/v1"


def gpus(node: str, count: int, generation: int = 1) -> dict:
    return {
        "driver": DRIVER,
        "nodeName": node,
        "pool": {"name": node, "generation": generation, "resourceSliceCount": 1},
        "devices": [
            {
                "name": f"gpu-{i}",
                "attributes": {"model": {"string": "h100"}, "uuid": {"string": f"{node}-{i}"}},
                "capacity": {"memory": {"value": "80Gi"}},
            }
            for i in range(count)
        ],
    }


def claims(world) -> list[dict]:
    path = f"{API}/namespaces/{world.namespace}/resourceclaims"
    return world.cluster.api("GET", path)["items"]
