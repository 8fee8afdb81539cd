"""Validate many reports on all cores, and make a page and a comparison of reports. Needs no gateway."""

from pathlib import Path

from gatewright import report

folder = Path(__file__).resolve().parents[1] / "reports"

# Threads read paths, given as str or Path; results arrive as they are ready. Bytes are documents.
for judged in report.validate_many(sorted(folder.glob("*.json"))):
    name = Path(str(judged.source)).name
    if judged.outcome is None:
        print(f"{name}: {judged.error}")
    else:
        print(f"{name}: {'valid' if judged.outcome.valid else judged.outcome.violations[0].message}")

good = folder / "good.json"
Path("report.html").write_text(report.html(good))
slower = good.read_text().replace('"duration_ms": ', '"duration_ms": 999')
for cell in report.diff(good, slower)["slower"]:
    print(f"{cell['id']} {cell['model']}: {cell['old_ms']} ms, then {cell['new_ms']} ms")
