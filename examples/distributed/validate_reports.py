"""Validates a partitioned data set of reports on a Ray cluster. Each worker gets the validator once.

    pip install gatewright -r requirements.txt
    python validate_reports.py                     # makes a data set, and a cluster on this machine
    python validate_reports.py s3-mounted/reports  # partitions: the folder's *.ndjson, one report per line

Each worker reads its partition line by line and skips blank lines; only counts and the first few verdicts
are sent back. To use a running cluster, set RAY_ADDRESS; every node needs the gatewright package and access
to the folder.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import ray
from gatewright import report
from ray.util import ActorPool

GOOD = Path(__file__).resolve().parents[1] / "reports" / "good.json"
SHOWN = 3
"""Maximum number of verdicts that a partition sends back as text; the rest are counted by rule."""


class Partition(NamedTuple):
    """A worker's result for a partition."""

    name: str
    reports: int
    invalid: int
    rules: Counter[str]
    first: list[str]
    seconds: float


@ray.remote(num_cpus=1)
class Worker:
    """Keeps the validator, whose schema is compiled on arrival, for all partitions that it validates."""

    def __init__(self, validator: report.Validator) -> None:
        self.validator = validator

    def judge(self, path: str) -> Partition:
        begin = time.perf_counter()
        reports = invalid = 0
        rules: Counter[str] = Counter()
        first: list[str] = []
        with open(path, "rb") as lines:
            # One thread: the worker has one core. By default, validate_many would use all cores.
            for judged in self.validator.validate_many(lines, threads=1, ordered=True):
                reports += 1
                if judged.outcome is None or judged.outcome.valid:
                    continue
                invalid += 1
                rules.update(violation.rule for violation in judged.outcome.violations)
                if len(first) < SHOWN:
                    first.append(f"{path}:{judged.position + 1}: {judged.outcome.violations[0].message}")
        return Partition(path, reports, invalid, rules, first, time.perf_counter() - begin)


def write_data_set(folder: Path, partitions: int, reports: int) -> None:
    """Writes partitions of reports. Every hundredth report is broken."""
    good = json.loads(GOOD.read_text())
    line = json.dumps(good)
    broken = json.dumps({**good, "schema_version": "0.9"})
    for partition in range(partitions):
        with (folder / f"part-{partition:05}.ndjson").open("w") as file:
            file.writelines(f"{broken if number % 100 == 99 else line}\n" for number in range(reports))


def judge(folder: Path, workers: int) -> Iterator[Partition]:
    """Yields the partitions of a folder as they are completed."""
    # Put into the object store once; each worker gets it from there when it starts.
    validator = ray.put(report.Validator())
    pool = ActorPool([Worker.remote(validator) for _ in range(workers)])
    paths = sorted(str(path) for path in folder.glob("*.ndjson"))
    yield from pool.map_unordered(lambda worker, path: worker.judge.remote(path), paths)


def main() -> None:
    parser = argparse.ArgumentParser(description="Validates a partitioned data set of reports on Ray.")
    parser.add_argument("folder", type=Path, nargs="?", help="folder of *.ndjson; one is made if left out")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--partitions", type=int, default=16, help="of the data set that is made")
    parser.add_argument("--reports", type=int, default=2000, help="in each partition that is made")
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory() as made:
        folder = arguments.folder
        if folder is None:
            folder = Path(made)
            write_data_set(folder, arguments.partitions, arguments.reports)
        # Otherwise, Ray reports usage statistics to its developers.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        local = {} if "RAY_ADDRESS" in os.environ else {"num_cpus": arguments.workers}
        ray.init(include_dashboard=False, configure_logging=False, log_to_driver=False, **local)
        begin = time.perf_counter()
        done = sorted(judge(folder, arguments.workers))
        seconds = time.perf_counter() - begin
        ray.shutdown()

    for partition in done:
        counts = f"{partition.reports} reports  {partition.invalid} invalid"
        rate = f"{partition.reports / partition.seconds:,.0f}/s"
        print(f"{Path(partition.name).name}  {counts}  {rate}")
    reports = sum(partition.reports for partition in done)
    invalid = sum(partition.invalid for partition in done)
    rules = sum((partition.rules for partition in done), Counter[str]())
    print(f"{reports} reports in {len(done)} partitions, {invalid} invalid, {dict(rules)}")
    print(
        f"{seconds:.2f} s with {arguments.workers} workers, their start included: {reports / seconds:,.0f}/s"
    )
    for line in [line for partition in done for line in partition.first][:SHOWN]:
        print(line)
    if arguments.folder is None and invalid != reports // 100:
        raise SystemExit(f"{reports // 100} reports were written broken")


if __name__ == "__main__":
    main()
