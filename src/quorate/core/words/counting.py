"""Numbers with a noun, as English has them. Called by all who say how many."""


def counted(number: int, noun: str, of_one: str = "", of_many: str = "", *, form: str = "") -> str:
    """Return ``1 pod``, ``2 pods``; with verbs ``1 pod waits``, ``2 pods wait``.

    ``form`` says how the number is written: "," marks thousands.
    """
    words = (noun, of_one) if number == 1 else (f"{noun}s", of_many)
    return " ".join(filter(None, (f"{number:{form}}", *words)))
