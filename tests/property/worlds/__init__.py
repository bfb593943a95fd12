"""Random worlds for the core: an API server, its controllers, and the scheduler, in one process.

A world is a pure function of its seed. ``scripts`` draws what it is about (its themes), how the
operator configured the scheduler, and a list of moves; ``world`` plays them. Everything is told to
the scheduler through its door alone: ``observe``, ``decide``, ``verified``, ``may_complete``,
``journal``, ``explainer``. What must hold is checked by plain accounts (``accounts``) that share
nothing with the core, and, at rest, by asking a fresh scheduler that is told the same objects
(``rest``).

``python -m tests.property.worlds --help`` plays many of them.
"""
