"""One cache of libCacheSim over one trace: python -c ... TRACE POLICY CAPACITY_BYTES."""

import json
import sys
import time

import libcachesim

trace, policy, capacity = sys.argv[1], sys.argv[2], int(sys.argv[3])
names = {"fifo": "FIFO", "lru": "LRU", "sieve": "Sieve", "s3-fifo": "S3FIFO"}


def read():
    return libcachesim.TraceReader(
        trace=trace, trace_type=libcachesim.TraceType.ORACLE_GENERAL_TRACE
    )


# the totals that its ratios are of; not counted
requests = total = 0
with open(trace, "rb") as file:
    while block := file.read(24 * 65536):
        requests += len(block) // 24
        total += sum(
            int.from_bytes(block[at + 12 : at + 16], "little")
            for at in range(0, len(block), 24)
        )
reader = read()
cache = getattr(libcachesim, names[policy])(capacity)
before = time.process_time()
misses, missed = cache.process_trace(reader)
used = time.process_time() - before
print(
    json.dumps(
        {
            "requests": requests,
            "hits": round((1 - misses) * requests),
            "hit_bytes": round((1 - missed) * total),
            "cpu_us": round(used * 1e6),
        }
    )
)
