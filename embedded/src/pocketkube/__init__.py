"""A cluster in one process: a Kubernetes API over real HTTP, node agents, workload controllers.

The way of a request, and who may import whom (downwards only)::

    cluster.py                 everything together; what ``quorate up``, the demo and tests start
      server/                  HTTP and TLS: paths, bodies, watch streams, discovery, Tables
      agents/  controllers/    what kubelets and kube-controller-manager do, by calls of ``api``
      api/                     the API as calls: create, get, update, patch, delete, bind, evict
        registry/              what the server knows of each resource, and the rules of single kinds
        patch/                 JSON, merge, strategic-merge and apply patches: pure functions
        store/                 objects by key, revisions, watches; in memory or in SQLite
          schema/              the recorded OpenAPI document: shapes, checks, defaults of CRDs
            errors.py objects.py

Everything below ``server`` is synchronous: one event loop, one thread, so each call of ``api`` is
atomic. What the server knows of types comes from the document recorded from a real kube-apiserver
(``schema/recorded.json.xz``); what no document says (defaults, rules between fields) is in
``registry``, one module per kind.
"""
