"""All experiments of the paper, one after another.

    python benchmarks/paper/run.py [--quick] [--parts timing bagging ...] [--data FOLDER]
                                   [--published FOLDER] [--results FOLDER] [--jobs 2]
                                   [--limit SECONDS]

What a results file has already is not done again, so a run that was stopped goes on. --quick takes
small bundled data sets, one fold and short limits, a few minutes in all, and writes elsewhere.
Every part writes CSV files and figures; all together make README.md in the folder of results.
"""

import argparse
import time
from pathlib import Path

import bagging
import bagging_report
import boosting
import boosting_report
import case_study
import computation_time
import computation_time_report
import warm_starts
import warm_starts_report
import weighting
from units import HERE, Settings

PARTS = {
    "timing": (computation_time, computation_time_report),
    "weighting": (weighting, weighting),
    "warm_starts": (warm_starts, warm_starts_report),
    "bagging": (bagging, bagging_report),
    "boosting": (boosting, boosting_report),
    "case_study": (case_study, case_study),
}
"""What can be run, and what reports on it."""

SHARED = HERE.parent.parent.parent / "shared"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--data", type=Path, default=SHARED / "data")
    parser.add_argument("--published", type=Path, default=SHARED / "paper")
    parser.add_argument("--results", type=Path)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=float, help="for solvers of the relaxed problem")
    given = parser.parse_args()
    if not given.quick and not given.data.exists():
        raise SystemExit(f"{given.data} does not exist: say where the data sets are with --data.")
    name = "paper-quick" if given.quick else "paper"
    results = given.results or HERE.parent / "results" / name
    settings = Settings(given.data, results, given.quick, given.jobs, given.published, given.limit)
    run(settings, given.parts)
    print(f"The results are in {results / 'README.md'}")


def run(settings: Settings, parts: list[str]) -> None:
    """Run some parts, then report on all that have results."""
    settings.results.mkdir(parents=True, exist_ok=True)
    for part in parts:
        begun = time.perf_counter()
        PARTS[part][0].run(settings)
        print(f"{part}: {time.perf_counter() - begun:.0f} s", flush=True)
    mode = " --quick" if settings.quick else ""
    lines = [
        "# The paper's experiments",
        "",
        f"Made by `python benchmarks/paper/run.py{mode}`, whose modules say how. Two protocols: "
        "*paper*, as in the code published with the paper, and *clean*: see `protocols.py`.",
        "",
    ]
    for part, (_, reporter) in PARTS.items():
        if (settings.results / f"{part}.csv").exists():
            lines += [*reporter.report(settings), ""]
    text = "\n".join(lines).rstrip() + "\n"
    (settings.results / "README.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
