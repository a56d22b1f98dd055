"""The grouping key of each shard in Spark's plan.

Spark puts a key into partition pmod(murmur3(key), n). With the keys 0..n-1 several shards would share a partition
while other partitions stay empty. So each shard gets the smallest key that Spark sends to the shard's own partition.
"""

_SPARK_SEED = 42


def shard_keys(n_shards: int) -> tuple[int, ...]:
    """Return the key of each shard: key i goes to shuffle partition i of ``n_shards``."""
    keys: dict[int, int] = {}
    candidate = 0
    while len(keys) < n_shards:
        keys.setdefault(_murmur3_of_int(candidate) % n_shards, candidate)
        candidate += 1
    return tuple(keys[partition] for partition in range(n_shards))


def _murmur3_of_int(value: int) -> int:
    """Return Spark's hash of an INT column as a signed number: MurmurHash3 x86 32 of its four bytes."""
    k = value * 0xCC9E2D51 & 0xFFFFFFFF
    k = _rotate_left(k, 15) * 0x1B873593 & 0xFFFFFFFF
    h = _rotate_left(_SPARK_SEED ^ k, 13) * 5 + 0xE6546B64 & 0xFFFFFFFF
    h ^= 4
    h = (h ^ h >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    h = (h ^ h >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    h ^= h >> 16
    return h - (1 << 32) if h & 0x80000000 else h


def _rotate_left(value: int, bits: int) -> int:
    return (value << bits | value >> 32 - bits) & 0xFFFFFFFF
