"""The Python package beside joblib, for row 24 of `docs/benchmarks.md`.

`./bench python` builds the package and runs this. By hand, with a Python that has joblib, NumPy and the package:

    python benches/python/package.py [hits] [results] [sweep] [misses]

Work and reference run in turns in one process, on one thread where no other number is given. A ratio is the median over
the pairs, with its quartiles.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import joblib
import numpy
import sde
from joblib.externals.loky import get_reusable_executor

import reached

PAIRS = 31
SLICE = 0.01
LARGE = 64 << 20


def row(work, reference, pairs, aim, faster=None):
    """Prints a row: `pairs` are seconds of the work and of the reference, in turns."""
    ratios = [reference / work if faster else work / reference for work, reference in pairs]
    low, ratio, high = statistics.quantiles(ratios, n=4)
    if faster:
        text, met = f"≥ {faster} times as fast", ratio >= faster
    else:
        text, met = (f"≤ {aim}", ratio <= aim) if aim else ("-", None)
    verdict = {True: "yes", False: "**no**", None: "-"}[met]
    times = [duration(statistics.median(times)) for times in zip(*pairs)]
    spread = f"{digits(ratio)} ({digits(low)}-{digits(high)})"
    print(f"| 24 | {work} | {reference} | {spread} | {text} | {verdict} | {times[0]} | {times[1]} |", flush=True)


def digits(ratio):
    return f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.2f}"


def duration(seconds):
    for unit, factor in (("s", 1), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.1f} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def timed(call):
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def interleaved(work, reference, calls):
    """Seconds for one call of either, in short slices that take turns; each goes first in every second pair."""
    counts = [max(1, int(SLICE / timed(lambda: work(*calls[0])))) for work in (work, reference)]
    pairs = []
    for number in range(PAIRS):
        pair = [0.0, 0.0]
        for which in (0, 1) if number % 2 else (1, 0):
            function, count = (work, reference)[which], counts[which]
            some = [calls[at % len(calls)] for at in range(count)]
            begin = time.perf_counter()
            for arguments in some:
                function(*arguments)
            pair[which] = (time.perf_counter() - begin) / count
        pairs.append(tuple(pair))
    return pairs


def rounds(work, reference, before=lambda: None, count=9):
    """Seconds of either, once in each round, with something done before each that is not timed."""
    pairs = []
    for number in range(count):
        pair = [0.0, 0.0]
        for which in (0, 1) if number % 2 else (1, 0):
            before()
            pair[which] = (work, reference)[which]()
        pairs.append(tuple(pair))
    return pairs[1:]


# Hits


def hits(folder):
    os.sched_setaffinity(0, list(os.sched_getaffinity(0))[-1:])
    ours = sde.Memory(folder / "sde")
    theirs = joblib.Memory(folder / "joblib", verbose=0)
    for name, function, calls, faster in cases():
        mine, other = ours.cache(function), theirs.cache(function)
        with warnings.catch_warnings():
            # joblib warns of functions that are over before it has timed them.
            warnings.simplefilter("ignore")
            for arguments in calls:
                mine(*arguments), other(*arguments)
        row(f"hit: {name}", "joblib `Memory`", interleaved(mine, other, calls), None, faster)


def cases():
    scalars = [(0.8 + at * 1e-4, at % 3, "6-31G*") for at in range(64)]
    settings = [({f"setting {at}": at * 0.5 + shift for at in range(100)},) for shift in range(16)]
    arrays = [(numpy.random.default_rng(seed).random(1 << 17),) for seed in range(4)]
    yield "three scalars, a function that reaches ten names", reached.energy, scalars, 50
    yield "a dict of 100 numbers", reached.total, settings, 10
    yield "an array of 1 MiB", reached.mean, arrays, 7
    yield "an array of 1 MiB, an array of 1 MiB back", reached.twice, arrays, None


# Results


def results(folder):
    """64 MiB, saved and loaded by a store that was opened anew, so that nothing is in memory."""
    for name, forget in (("in the page cache", lambda: None), ("not in the page cache", lambda: forget_all(folder))):
        loads(folder, name, forget)
    saves(folder)


def loads(folder, name, forget):
    array = numpy.random.default_rng(1).random(LARGE // 8)
    numpy.save(folder / "array.npy", array)
    memory = sde.Memory(folder / "sde", mmap_mode="r")
    memory.cache(reached.random)(1, LARGE // 8)
    memory.finish()
    theirs = joblib.Memory(folder / "joblib", verbose=0).cache(reached.random)
    theirs(1, LARGE // 8)

    def load(mode):
        loaded = sde.Memory(folder / "sde", mmap_mode=mode).cache(reached.random)
        assert loaded.is_cached(1, LARGE // 8)
        return timed(lambda: loaded(1, LARGE // 8))

    # What is not read from the disk can't be as fast as a copy: SDE checks each byte.
    aim = 1.2 if "not" in name else None
    references = (
        ("`numpy.load`", lambda: numpy.load(folder / "array.npy"), aim),
        ("joblib `Memory`", lambda: theirs(1, LARGE // 8), None),
        ("`Path.read_bytes`", (folder / "array.npy").read_bytes, None),
    )
    for mode, which in (("r", "read-only"), (None, "writable")):
        for reference, read, most in references:
            pairs = rounds(lambda: load(mode), lambda: timed(read), forget)
            row(f"64 MiB loaded, {which}, {name}", reference, pairs, most)


def saves(folder):
    array = numpy.random.default_rng(1).random(LARGE // 8)
    kept = reached.Kept(array)
    memory = sde.Memory(folder / "saved.sde", mmap_mode="r")
    ours = memory.cache(reached.Kept.give, ignore=["self"])
    theirs = joblib.Memory(folder / "saved.joblib", verbose=0).cache(reached.give_kept, ignore=["kept"])
    number = iter(range(1 << 30))

    def save():
        def both():
            ours(kept, next(number))
            memory.checkpoint()
        return timed(both)

    def reference():
        def both():
            with open(folder / f"{next(number)}.npy", "wb") as file:
                numpy.save(file, array)
                file.flush()
                os.fdatasync(file.fileno())
        return timed(both)

    work = "a result of 64 MiB, until it is on the disk"
    row(work, "`numpy.save` to a new file, and `fdatasync`", rounds(save, reference, os.sync), 1.2)
    row(work, "joblib `Memory`, which syncs nothing", rounds(save, lambda: timed(lambda: theirs(kept, next(number))), os.sync), None)


def forget_all(folder):
    """Has the system forget the files of a folder, which must be read from the disk then."""
    os.sync()
    for path in folder.rglob("*"):
        if path.is_file():
            with open(path, "rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


# Sweeps


def sweep(folder):
    """400 points of 20 ms, with two processes; in each round from nothing, and then all of them again.

    Both start their workers in each round, as a script does that makes one sweep.
    """
    first, again = [], []
    for number in range(3):
        for which in (0, 1) if number % 2 else (1, 0):
            run = (ours_sweep, joblib_sweep)[which](folder / f"{number}")
            get_reusable_executor().shutdown(wait=True)
            first.append((which, number, timed(run)))
            again.append((which, number, timed(run)))
    for name, times in (("from nothing", first), ("all remembered", again)):
        pairs = [[seconds for which in (0, 1) for w, n, seconds in times if (w, n) == (which, number)] for number in range(3)]
        row(f"400 points of 20 ms, two processes: {name}", "joblib `Parallel` with `Memory`", pairs, 1)


def ours_sweep(folder):
    memory = sde.Memory(folder / "sde")
    point = memory.cache(reached.point)
    return lambda: memory.map(point, list(range(400)), processes=2)


def joblib_sweep(folder):
    point = joblib.Memory(folder / "joblib", verbose=0).cache(reached.point)
    return lambda: joblib.Parallel(n_jobs=2)(joblib.delayed(point)(x) for x in range(400))


# Misses


def misses(folder):
    ours = sde.Memory(folder / "sde").cache(reached.energy)
    theirs = joblib.Memory(folder / "joblib", verbose=0).cache(reached.energy)
    number = iter(range(1 << 30))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pairs = interleaved(lambda: ours(next(number) * 0.1, 1, "x"), lambda: theirs(next(number) * 0.1, 1, "x"), [()])
    row("a miss of a function that does next to nothing", "joblib `Memory`", pairs, 1)


PARTS = {"hits": hits, "results": results, "sweep": sweep, "misses": misses}


def run(name):
    folder = Path(tempfile.mkdtemp(prefix="sde-bench-", dir=os.environ.get("SDE_BENCH_DIR")))
    try:
        PARTS[name](folder)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    if sys.argv[1:]:
        for part in sys.argv[1:]:
            run(part)
    else:
        print("| # | work | reference | ratio (quartiles) | aim | met | work | reference |")
        print("|---|---|---|---:|---:|---|---:|---:|", flush=True)
        # Each in a process of its own: the hits keep theirs on one core.
        for part in PARTS:
            subprocess.run([sys.executable, __file__, part], check=True)
