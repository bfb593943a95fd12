"""The production scheduler under virtual time, with faults that a seed drives, and checkers.

What runs is ``shell.app.App`` with the real core, watchers, binder, evictor, elector and reporter,
against the real rules of ``pocketkube.api``; only time, chance and the network between them are
made here. The same seed gives the same run, to the byte. Who imports whom, downwards only::

    __main__.py               one seed, or a soak of many
      soak.py                 many seeds in several processes, and the summary
      run.py                  one seed: faults, then calm, then what has to hold at rest
        chaos.py workload.py  what happens to the cluster: rivals, nodes, edits; jobs and their pods
        fleet.py              replicas of the scheduler: started, stopped, killed at any await
        rest.py checks.py     the checkers: at rest, and at each write
        world.py              an API, its nodes' agents, and the network, put together
          network.py          requests and streams between replicas and the API; where faults happen
          faults.py           which faults, how often: drawn from the seed
          server.py           paths and bodies to calls of ``pocketkube.api``
          history.py          what was true of each pod, node and gang at each revision
          loop.py             an event loop whose clock jumps to the next timer
"""
