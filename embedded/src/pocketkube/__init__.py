"""A cluster in one process: a Kubernetes API over real HTTP, node agents, workload controllers.

The way of a request, and who may import whom (downwards only)::

    __main__.py                ``python -m pocketkube``
    cluster.py                 everything together; what programs and tests start
      server/                  HTTP and TLS: paths, bodies, watch streams
        documents/  tables/    discovery and OpenAPI; what ``kubectl get`` shows
      agents/                  what kubelets do, by calls of ``api``; ``pods/`` for one pod
      controllers/             what kube-controller-manager does: workloads/ jobs/ upkeep/
      api/                     the API as calls: create, get, update, patch, delete, bind, evict
        admission/  rights/    what is refused before the rules of a kind; who may do what
        registry/              what the server knows of each resource, and the rules of its kind
        patch/                 JSON, merge, strategic-merge and apply patches
        store/                 objects by key, revisions, watches; in memory or in a file
          schema/              the recorded OpenAPI document, CRDs (custom/), protobuf (binary/)
          matching/            selectors of labels, fields and nodes
            access.py private_files.py names.py causes.py objects.py errors.py

Everything below ``server`` is synchronous: one event loop, one thread, so each call of ``api`` is
atomic. What the server knows of types comes from the document recorded from a real kube-apiserver
(``schema/recorded.json.xz``); what no document says (defaults, rules between fields) is in
``registry``, one module per kind.
"""
