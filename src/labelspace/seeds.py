"""Named child seeds of one seed; no global random state is touched.

A child seed depends only on its parent and its name, not on other child seeds, so a new random decision changes no
other.
"""

import hashlib

SEED_BITS = 63


def child_seed(seed: int, *names: str | int) -> int:
    """Derive the seed of one named random decision from the seed of the run.

    Args:
        seed: the run's seed, any integer.
        names: a path of names, for example `("dropout", step, chunk)`.

    Returns:
        An integer, `0 <= child < 2**63`, valid for `torch.Generator.manual_seed` and `numpy.random.default_rng`.

    Example:
        >>> child_seed(0, "pool") == child_seed(0, "pool")
        True
        >>> child_seed(0, "pool") == child_seed(1, "pool")
        False
    """
    path = "/".join([str(int(seed)), *(f"{type(name).__name__}:{name}" for name in names)])
    digest = hashlib.blake2b(path.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> (64 - SEED_BITS)
