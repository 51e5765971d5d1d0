"""How long the first call takes in this process: `python -m benchmarks.first_call NAME` prints JSON."""

import json
import sys
import time

from .peers import OURS, PEERS
from .workloads import workload_named


def main() -> None:
    workload = workload_named(sys.argv[1])
    inputs = workload.inputs()
    start = time.perf_counter()
    library = PEERS[OURS]()
    library.configure(workload, inputs)  # it imports pullback; NumPy is imported already

    imported = time.perf_counter()
    workload.import_module(OURS)
    begun = time.perf_counter()
    library.prepare(workload, library.arguments(workload, inputs))()
    print(json.dumps({"import": imported - start, "call": time.perf_counter() - begun}))


if __name__ == "__main__":
    main()
