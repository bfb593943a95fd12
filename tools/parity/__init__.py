"""Compare what the core says of a pod with what kube-scheduler's own plugins say.

``cases`` draws random clusters; ``ours`` asks the core, through the decoders that watch the API
server; ``compare`` lists the differences, less those that are deliberate (``differences``).
"""
