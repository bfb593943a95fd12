"""Defects that a test plants."""


class Planted(Exception):  # noqa: N818  it stands for any defect
    """A defect that a test plants."""


def fails_for(patch, owner, name, is_poison):
    """Let a function raise when one of its arguments is poison."""
    real = getattr(owner, name)

    def planted(*arguments, **named):
        if any(is_poison(one) for one in (*arguments, *named.values())):
            raise Planted("planted")
        return real(*arguments, **named)

    patch.setattr(owner, name, planted)


def fails_once(patch, owner, name):
    """Let the next call of a function raise."""
    real, left = getattr(owner, name), [1]

    def planted(*arguments, **named):
        if left:
            left.pop()
            raise Planted("planted")
        return real(*arguments, **named)

    patch.setattr(owner, name, planted)
