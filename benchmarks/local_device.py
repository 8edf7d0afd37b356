"""What a device pays: one release of a series, the export's size, memory and start-up, by format.

    python benchmarks/local_device.py [--release label|place] [--data GunPoint] [--out FILE]

Trains the sound model (on GunPoint unless told otherwise) and exports it three times.

- `npz`: a fresh process that imports `tacit.local.device` alone: seconds from the start of the
  interpreter to the first release, milliseconds per release (encoding, channel and secure noise;
  with and without a ledger on disk), and peak resident memory.
- `web`: headless Chromium: milliseconds per release after the first, and of the first.
- `c`: compiled with -O3: processor milliseconds per release, bytes of memory beside the weights.

A program that is not installed (chromium, cc) leaves its part out. Prints one JSON object with its
targets; --out appends it to a file as one line, with the commit. Wall times want idle cores.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from tacit.arena.record import commit, versions
from tacit.arrays import Floats
from tacit.data import load_dataset
from tacit.local.estimator import DPSoftShapeClassifier

LIMITS = {
    "npz": {"release_ms": 5.0, "bundle_kb": 500.0, "rss_mb": 60.0, "start_seconds": 0.3},
    "web": {"release_ms": 20.0, "module_kb": 400.0},
    "c": {"release_cpu_ms": 5.0, "memory_kb": 64.0},
}
ROUNDS = 200

DEVICE = """
import json, sys, time
import numpy as np
from tacit.local.device import Device
device = Device.load(sys.argv[1])
series = np.load(sys.argv[2])
device.release(series[0])
started, started_cpu = time.time() - float(sys.argv[3]), time.process_time()
heavy = {"torch", "scipy", "aeon", "sklearn"}
loaded = sorted({name.split(".")[0] for name in sys.modules} & heavy)
def milliseconds(call):
    took = []
    for i in range(int(sys.argv[4])):
        begin = time.perf_counter()
        call(series[i % len(series)])
        took.append(1e3 * (time.perf_counter() - begin))
    return sorted(took)
begin = time.process_time()
plain = milliseconds(device.release)
cpu = 1e3 * (time.process_time() - begin) / len(plain)
from tacit.ledger import Ledger
with Ledger.open(sys.argv[5]) as ledger:
    debited = milliseconds(lambda row: device.release(row, ledger=ledger))
# The kernel's own high-water mark: ru_maxrss would count the parent before exec.
status = open("/proc/self/status").read().split("VmHWM:")[1].split()[0]
half = len(plain) // 2
print(json.dumps({
    "start_seconds": started, "start_cpu_seconds": started_cpu,
    "release_ms": plain[half], "release_cpu_ms": cpu, "release_ms_best": plain[0],
    "release_ms_p95": plain[int(0.95 * len(plain))], "release_with_ledger_ms": debited[half],
    "rss_mb": int(status) / 1024, "heavy_modules": loaded,
}))
"""


# Timed without the network: the page holds the module and one series.
PAGE = """<!doctype html><pre id="out"></pre><script type="module">
MODULE
const device = loadDevice(), series = SERIES, took = [];
for (let i = 0; i < ROUNDS; i++) {
  const begin = performance.now();
  device.release(series[i % series.length]);
  took.push(performance.now() - begin);
}
const sorted = took.slice(1).sort((a, b) => a - b);
document.getElementById("out").textContent = JSON.stringify({
  release_ms: sorted[sorted.length >> 1], release_ms_best: sorted[0], first_release_ms: took[0],
});
</script>"""

C_TIMER = """
#include <stdio.h>
#include <sys/random.h>
#include <time.h>
#include "tacit_device.h"
static tacit_memory memory;
static double series[TACIT_CHANNELS * TACIT_STEPS];
static int fill(void *context, unsigned char *bytes, size_t count)
{
    (void)context;
    return getrandom(bytes, count, 0) == (long)count ? 0 : -1;
}
int main(void)
{
    int i, symbol;
    clock_t begin;
    for (i = 0; i < TACIT_CHANNELS * TACIT_STEPS; i++)
        if (scanf("%lf", &series[i]) != 1)
            return 1;
    begin = clock();
    for (i = 0; i < 500; i++)
        if (tacit_release(&memory, series, TACIT_CHANNELS, TACIT_STEPS, fill, 0, &symbol))
            return 1;
    printf("{\\"release_cpu_ms\\": %.4f, \\"memory_kb\\": %.3f}\\n",
           1e3 * (double)(clock() - begin) / CLOCKS_PER_SEC / 500, sizeof memory / 1e3);
    return 0;
}
"""


def measure_npz(classifier: DPSoftShapeClassifier, X: Floats, folder: Path) -> dict[str, Any]:
    one_thread = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    bundle, series = folder / "gunpoint.tacit", folder / "series.npy"
    classifier.export_device(bundle)
    np.save(series, X[:, 0])
    runs = []
    for number in range(3):  # the first start reads files from disk; keep the best of three
        database = folder / f"ledger{number}.db"
        arguments = [str(bundle), str(series), repr(time.time()), str(ROUNDS), str(database)]
        done = subprocess.run(
            [sys.executable, "-c", DEVICE, *arguments],
            capture_output=True, text=True, check=True, env=one_thread,
        )  # fmt: skip
        runs.append(json.loads(done.stdout))
    best = {key: min(run[key] for run in runs) for key in runs[0] if key != "heavy_modules"}
    size = bundle.stat().st_size / 1000
    return {**best, "bundle_kb": size, "heavy_modules": runs[0]["heavy_modules"]}


def measure_web(classifier: DPSoftShapeClassifier, X: Floats, folder: Path) -> dict[str, Any]:
    browser = shutil.which("chromium")
    if browser is None:
        return {}
    classifier.export_device(folder / "web", format="web")
    module = folder / "web" / "device.mjs"
    text = PAGE.replace("SERIES", json.dumps(X[:20, 0].tolist())).replace("ROUNDS", "60")
    page = folder / "page.html"
    page.write_text(text.replace("MODULE", module.read_text()))
    done = subprocess.run(
        [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
         "--dump-dom", f"file://{page}"],
        capture_output=True, text=True, check=True, timeout=300,
    )  # fmt: skip
    told = done.stdout.split('<pre id="out">')[1].split("</pre>")[0]
    return {**json.loads(told), "module_kb": module.stat().st_size / 1000}


def measure_c(classifier: DPSoftShapeClassifier, X: Floats, folder: Path) -> dict[str, Any]:
    compiler = shutil.which("cc")
    if compiler is None:
        return {}
    place = folder / "c"
    classifier.export_device(place, format="c")
    (place / "timer.c").write_text(C_TIMER)
    sources = [str(place / "timer.c"), str(place / "tacit_device.c")]
    subprocess.run(
        [compiler, "-std=c99", "-O3", "-o", str(place / "timer"), *sources, "-lm"], check=True
    )
    numbers = " ".join(repr(float(value)) for value in X[0].ravel())
    runs = [
        json.loads(
            subprocess.run(
                [str(place / "timer")], input=numbers, capture_output=True, text=True, check=True
            ).stdout
        )
        for _ in range(3)
    ]
    subprocess.run(
        [compiler, "-std=c99", "-O3", "-c", "-o", str(place / "device.o"), sources[1]], check=True
    )
    size = (place / "device.o").stat().st_size / 1000
    return {**min(runs, key=lambda run: float(run["release_cpu_ms"])), "object_kb": size}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--release", choices=("label", "place"), default="label")
    parser.add_argument("--data", default="GunPoint")
    parser.add_argument("--out", type=Path, help="append the result to this file as one line")
    options = parser.parse_args()
    data = load_dataset(options.data)
    classifier = DPSoftShapeClassifier(1.0, release=options.release, random_state=0)
    classifier.fit(data.X_train, data.y_train)
    result: dict[str, Any] = {"release": options.release, "data": data.name, "limits": LIMITS}
    with tempfile.TemporaryDirectory() as folder:
        for name, measure in (("npz", measure_npz), ("web", measure_web), ("c", measure_c)):
            found = measure(classifier, data.X_test, Path(folder))
            within = {key: found[key] < limit for key, limit in LIMITS[name].items() if found}
            result[name] = {**found, "within": within}
    result["load_average"] = os.getloadavg()[0]
    print(json.dumps(result, indent=2))
    if options.out is not None:
        with options.out.open("a") as file:
            file.write(json.dumps({**result, "commit": commit(), "versions": versions()}) + "\n")


if __name__ == "__main__":
    main()
