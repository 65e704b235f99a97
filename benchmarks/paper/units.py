"""Experiments in units that are done once: what a results file has already is not done again."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Settings:
    """How to run.

    Attributes
    ----------
    data : Path or None
        Folder of the data sets. Without it, and to be quick, what is bundled is taken: see
        `sets.BUNDLED`.
    results : Path
        Where tables and figures go.
    quick : bool
        Whether to be quick about it.
    jobs : int
        Processes for what is not timed.
    published : Path or None
        Folder of the authors' results.
    limit : float or None
        Seconds for each solver of the relaxed problem; None for what the module says.
    """

    data: Path | None
    results: Path
    quick: bool = False
    jobs: int = 2
    published: Path | None = None
    limit: float | None = None

    @property
    def folder(self) -> Path | None:
        """Where to read data sets from; None for what is bundled."""
        is_there = self.data is not None and self.data.exists() and not self.quick
        return self.data if is_there else None


def run_units(
    file: Path,
    units: Sequence[dict[str, Any]],
    work: Callable[..., list[dict[str, Any]]],
    jobs: int = 1,
) -> pd.DataFrame:
    """Return a table with the rows that ``work(**unit)`` gives for each unit, the unit in front.

    Rows are added to the CSV `file` as soon as a unit is done; a unit that it has is left out. So a
    run that was stopped goes on where it was. What tells units apart is text or whole numbers.
    """
    done = pd.read_csv(file) if file.exists() else pd.DataFrame(columns=list(units[0]))
    known = set(_keys(done, units[0]))
    left = [unit for unit in units if tuple(map(str, unit.values())) not in known]
    columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()]
    with Progress(*columns, TimeRemainingColumn()) as progress:
        task = progress.add_task(file.stem, total=len(units), completed=len(units) - len(left))
        calls = (joblib.delayed(_rows)(work, unit) for unit in left)
        for rows in joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")(calls):
            frames = [frame for frame in (done, pd.DataFrame(rows)) if len(frame)]
            done = pd.concat(frames, ignore_index=True)
            write_table(done, file)
            progress.advance(task)
    # Units are done in any order, but stand in theirs.
    place = {tuple(map(str, unit.values())): i for i, unit in enumerate(units)}
    order = np.argsort([place.get(key, len(place)) for key in _keys(done, units[0])], kind="stable")
    done = done.iloc[order].reset_index(drop=True)
    write_table(done, file)
    return done


def write_table(table: pd.DataFrame, file: Path) -> None:
    """Write a CSV file, which appears under its name only when it is complete."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(".part")
    table.to_csv(part, index=False, float_format="%.9g")
    part.rename(file)


def _keys(table: pd.DataFrame, unit: dict[str, Any]) -> list[tuple[str, ...]]:
    return [*table[list(unit)].astype(str).itertuples(index=False, name=None)]


def _rows(work: Callable[..., list[dict[str, Any]]], unit: dict[str, Any]) -> list[dict[str, Any]]:
    return [unit | row for row in work(**unit)]
