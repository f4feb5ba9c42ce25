"""One seed enters, named child seeds leave; no global random state is touched.

A child depends only on the parent and on its name, never on how many other children were asked for,
so adding one random decision somewhere moves no other.
"""

import hashlib

SEED_BITS = 63


def child_seed(seed: int, *names: str | int) -> int:
    """Derive the seed of one named random decision from the seed of the run.

    Args:
        seed: the run's seed, any integer.
        names: a path of names, for example `("dropout", step, chunk)`.

    Returns:
        An integer, `0 <= child < 2**63`, good for `torch.Generator.manual_seed` and
        `numpy.random.default_rng`.

    Example:
        >>> child_seed(0, "pool") == child_seed(0, "pool")
        True
        >>> child_seed(0, "pool") == child_seed(1, "pool")
        False
    """
    path = "/".join([str(int(seed)), *(f"{type(name).__name__}:{name}" for name in names)])
    digest = hashlib.blake2b(path.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> (64 - SEED_BITS)
