"""What a hit costs in two Python memoizers, for row 3 of the speed table.

Not run with the other benchmarks, since it needs other software:

    python3 -m venv venv
    venv/bin/pip install joblib parsl
    venv/bin/python benches/python/peers.py

The app and its inputs are those of `benches/benches/rows/work.rs`. Everything is computed once,
then only hits are timed: different inputs in a fixed random order, and the same inputs each time.
"""

import logging
import platform
import random
import statistics
import tempfile
import time

KEYS = 1024
ROUNDS = 7


def arguments(number):
    molecules = ["water", "ammonia", "formaldehyde"]
    bases = ["STO-3G", "6-31G*", "cc-pVDZ"]
    return (
        molecules[number % 3],
        bases[number // 3 % 3],
        0.8 + number * 1e-4,
        104.5,
        0,
        True,
    )


def energy(molecule, basis, distance, angle, charge, spherical):
    return len(molecule) + len(basis) + distance * angle + charge + spherical


def timed(call, trace):
    """Nanoseconds for one call: the median of a few rounds."""
    times = []
    for _ in range(ROUNDS):
        begin = time.perf_counter_ns()
        for inputs in trace:
            call(*inputs)
        times.append((time.perf_counter_ns() - begin) / len(trace))
    return statistics.median(times)


def report(name, version, call, fill):
    everything = [arguments(number) for number in range(KEYS)]
    fill(everything)
    random.Random(5).shuffle(everything)
    few = everything[:256]
    different = timed(call, few)
    same = timed(call, few[:1] * len(few))
    print(f"| {name} {version} | {different / 1000:.0f} µs | {same / 1000:.0f} µs |")


def with_joblib(folder):
    import joblib

    memory = joblib.Memory(folder, verbose=0)
    remembered = memory.cache(energy)
    report(
        "joblib",
        joblib.__version__,
        remembered,
        lambda trace: [remembered(*inputs) for inputs in trace],
    )


def with_parsl(folder):
    import parsl
    from parsl.config import Config
    from parsl.executors.threads import ThreadPoolExecutor

    logging.getLogger("parsl").setLevel(logging.ERROR)
    config = Config(
        executors=[ThreadPoolExecutor(max_threads=2)], run_dir=folder, initialize_logging=False
    )
    with parsl.load(config):
        remembered = parsl.python_app(energy, cache=True)
        report(
            "Parsl",
            parsl.__version__,
            lambda *inputs: remembered(*inputs).result(),
            lambda trace: [run.result() for run in [remembered(*inputs) for inputs in trace]],
        )


if __name__ == "__main__":
    print(f"Python {platform.python_version()}\n")
    print("| | different inputs | same inputs |")
    print("|---|---:|---:|")
    for peer in (with_joblib, with_parsl):
        with tempfile.TemporaryDirectory() as folder:
            peer(folder)
