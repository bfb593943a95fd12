"""What kube-controller-manager does for workloads, inside the process of the API.

``manager.Manager`` starts them all. Watches only note facts and mark keys; the work is done later,
by ``Manager.step``, in slices that leave room for the requests of others::

    event -> PodTable, Controller.on_event -> WorkQueue -> Manager.step -> Controller.reconcile
"""
