"""Checks of manifests before they are applied: ``quorate lint``.

``reading`` turns files into documents with line numbers, ``manifests`` finds the pods, PodGroups
and gangs in them with the dialects' own decoding, and ``rules`` looks at those. Nothing here talks
to a cluster. Called by ``cli``; imports dialects, the core and the shell's decoding of pods.
"""
