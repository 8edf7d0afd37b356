"""The guide's lines of JavaScript and C, compiled and run with an exported device."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from exported import STRICT, exported, problem
from system_packages import needed

GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "local.md"
PROGRAM = """#include <stdio.h>
#include "tacit_device.h"
static int my_random(void *context, unsigned char *bytes, size_t count)
{
    FILE *file = fopen("/dev/urandom", "rb");
    size_t got = file == NULL ? 0 : fread(bytes, 1, count, file);
    (void)context;
    if (file != NULL)
        fclose(file);
    return got == count ? 0 : -1;
}
static const double series[] = {SERIES};
int main(void)
{
    char text[sizeof TACIT_GUARANTEE + 200] = "";
    int symbol = 0;
    {
BLOCK    }
    puts(text);
    return 0;
}
"""


def block(kind: str) -> str:
    (found,) = re.findall(rf"^```{kind}\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.M | re.S)
    return str(found)


def series() -> str:
    return ", ".join(f"{value:.17g}" for value in problem("italy 2.0")[1][0].ravel())


@pytest.mark.seconds
def test_the_lines_of_c_release_a_series(tmp_path: Path) -> None:
    place = exported("italy 2.0", tmp_path, "c")
    source, program = place / "guide.c", place / "guide"
    source.write_text(PROGRAM.replace("SERIES", series()).replace("BLOCK", block("c")))
    sources = [str(source), str(place / "tacit_device.c")]
    done = subprocess.run(
        [needed("cc"), *STRICT, "-o", str(program), *sources, "-lm"],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    sent = subprocess.run([str(program)], capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(sent.stdout)["kind"] == "label"


@pytest.mark.seconds
def test_the_lines_of_javascript_release_a_series(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed; tests/local/exports/test_web.py calls the same names")
    script = exported("italy 2.0", tmp_path, "web") / "guide.mjs"
    lines = block("js") + "console.log(JSON.stringify(release));\n"
    script.write_text(f"globalThis.series = [{series()}];\n{lines}")
    done = subprocess.run([node, str(script)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["kind"] == "label"
