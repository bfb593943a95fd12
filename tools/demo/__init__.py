"""``make demo``: a story about gangs, played on embedded clusters, each step told and checked.

In: the manifests of ``examples/``. Out: text in the terminal, and exit code 0 only if every step
did what it says. Needs no kubectl, no Go and no network::

    __main__.py   options, signals, exit codes
    story.py      the four steps, as a person reads them
    stage.py      what a step can do: apply, scale, delete, ask why, wait until something is true
    screen.py     narration, and the live view above which it scrolls
    view.py       nodes and gangs as text; world.py reads them from the API
    naive.py      the scheduler of the other cluster: one pod at a time
    clusters.py   ``quorate up`` as a process; requests as kubectl sends them
"""
