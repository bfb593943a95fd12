"""The production scheduler under virtual time, with faults that a seed drives, and checkers.

What runs is ``shell.app.App`` with the real core, watchers, binder, evictor, elector and reporter,
against the real rules of pocketkube's API; only time, chance and the network between them are made
here. The same seed gives the same run, to the byte. Who imports whom, downwards only::

    __main__.py               one seed, or a soak of many
      soak.py large.py        many seeds in several processes, and the summary; one large world
      run.py                  one seed: faults, then calm, then what has to hold at rest
        themes/               what some runs are about: priorities, zones, volumes, restarts, ...
        chaos.py workload.py  what happens to the cluster: rivals, nodes, edits; jobs and their pods
        fleet.py              replicas of the scheduler: started, stopped, killed at any await
        checkers/             at each plan, request and write, as time passes, and at rest
        cluster/              an API, its nodes' agents, and the network, put together
        faults.py             which faults, how often: drawn from the seed
        virtual_loop.py       an event loop whose clock jumps to the next timer
"""
