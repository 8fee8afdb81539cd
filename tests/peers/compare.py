"""Compares our verdicts on the report vectors with those of ajv, jsonschema and jsonschema-rs.

    python compare.py --program target/debug/gatewright

Needs requirements.txt installed, and node with the packages of package.json installed in this folder.

For every case without options in tests/vectors/report, it compares the verdict and, for a document that we can
read, the set of (JSON Pointer, keyword) of its violations. A peer may differ if the case explains why, under
`peers`. Fails on an unexplained difference, and on an explanation that is no longer needed.
"""

import argparse
import base64
import json
import pathlib
import subprocess
import sys
import tempfile

import jsonschema
import jsonschema_rs

HERE = pathlib.Path(__file__).resolve().parent
VECTORS = HERE.parent / "vectors" / "report"
SCHEMA = HERE.parents[1] / "spec" / "report.schema.json"

# Our rules for unreadable documents; the peers have no names for them.
READER_RULES = {"size", "empty", "encoding", "syntax", "number", "duplicate_key", "depth", "trailing"}


# The cases, as tests/vectors/README.md describes them.


def load_cases():
    """All cases without options, each with its document as bytes under `bytes`."""
    cases = []
    for file in sorted(VECTORS.glob("*.json")):
        for case in json.loads(file.read_text("utf-8"))["cases"]:
            if "options" in case:
                continue
            case["name"] = f"{file.stem}/{case['name']}"
            case["bytes"] = document(case)
            cases.append(case)
    return cases


def document(case):
    """The bytes of a case."""
    if "base64" in case:
        return base64.b64decode(case["base64"])
    if "text" in case:
        text = case["text"]
        return (text if isinstance(text, str) else "\n".join(text)).encode()
    if "document" in case:
        value = case["document"]
    else:
        value = json.loads((VECTORS / "bases" / f"{case['base']}.json").read_text("utf-8"))
    for pointer, new in case.get("set", {}).items():
        put(value, pointer, new)
    for pointer in case.get("remove", []):
        parent, step = find(value, pointer)
        del parent[step]
    for pointer, (text, times) in case.get("fill", {}).items():
        put(value, pointer, text * times)
    raw = list(case.get("raw", {}).items())
    for index, (pointer, _) in enumerate(raw):
        put(value, pointer, f"@raw {index}@")
    text = json.dumps(value, ensure_ascii=False)
    for index, (_, literal) in enumerate(raw):
        text = text.replace(f'"@raw {index}@"', literal)
    return text.encode()


def find(value, pointer):
    """The container and the key or index that a pointer below the root names."""
    *parents, last = [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
    for step in parents:
        value = value[int(step) if isinstance(value, list) else step]
    return value, int(last) if isinstance(value, list) else last


def put(value, pointer, new):
    parent, step = find(value, pointer)
    if isinstance(parent, list) and step == len(parent):
        parent.append(new)
    else:
        parent[step] = new


# The validators: each returns (read, valid, set of (pointer, keyword)) for every file.


def gatewright(program, files):
    run = subprocess.run(
        [program, "report", "validate", "--strict-names", "--format", "json", *files],
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    if run.returncode not in (0, 1):
        sys.exit(f"{program} failed: {run.stderr}")
    verdicts = [json.loads(line) for line in run.stdout.splitlines()]
    for verdict in verdicts:
        findings = {(violation["pointer"], violation["rule"]) for violation in verdict["violations"]}
        yield not any(rule in READER_RULES for _, rule in findings), verdict["valid"], findings


def ajv(files):
    run = subprocess.run(
        ["node", str(HERE / "ajv.mjs"), str(SCHEMA), *files], capture_output=True, text=True, encoding="utf-8"
    )
    if run.returncode != 0:
        sys.exit(f"ajv.mjs failed: {run.stderr}")
    for line in run.stdout.splitlines():
        verdict = json.loads(line)
        yield verdict["read"], verdict["valid"], {tuple(finding) for finding in verdict["findings"]}


def in_python(files, findings_of):
    for file in files:
        try:
            value = json.loads(pathlib.Path(file).read_bytes())
            findings = set(findings_of(value))
        except (ValueError, RecursionError):
            yield False, False, set()
        else:
            yield True, not findings, findings


def pointer_of(path):
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def python_jsonschema(schema, files):
    validator = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)

    def leaves(errors):
        for error in errors:
            if error.validator == "anyOf":
                yield from leaves(error.context)
            else:
                yield pointer_of(error.absolute_path), error.validator

    return in_python(files, lambda value: leaves(validator.iter_errors(value)))


def python_jsonschema_rs(schema, files):
    validator = jsonschema_rs.Draft202012Validator(schema, validate_formats=True)

    def leaves(errors):
        for error in errors:
            if isinstance(error.kind, jsonschema_rs.ValidationErrorKind.AnyOf):
                for branch in error.kind.context:
                    yield from leaves(branch)
            else:
                yield pointer_of(error.instance_path), error.schema_path[-1]

    return in_python(files, lambda value: leaves(validator.iter_errors(value)))


def difference(ours, theirs):
    """How a peer's result differs from ours, or None."""
    (our_read, our_valid, our_findings), (read, valid, findings) = ours, theirs
    if our_valid != valid:
        return "accepts" if valid else "refuses"
    if not our_read:
        return None  # rejected by all; only ours names the rule
    if not read:
        return "does not read"
    if our_findings != findings:
        return f"finds {sorted(findings)} where we find {sorted(our_findings)} in"
    return None


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--program", required=True, help="the gatewright program, built from this repository")
    program = arguments.parse_args().program
    schema = json.loads(SCHEMA.read_text("utf-8"))
    cases = load_cases()
    problems = []
    with tempfile.TemporaryDirectory(prefix="gatewright-peers-") as folder:
        files = []
        for index, case in enumerate(cases):
            file = pathlib.Path(folder, f"{index:04}.json")
            file.write_bytes(case["bytes"])
            files.append(str(file))
        ours = list(gatewright(program, files))
        peers = {
            "ajv": list(ajv(files)),
            "jsonschema": list(python_jsonschema(schema, files)),
            "jsonschema-rs": list(python_jsonschema_rs(schema, files)),
        }
    explained = 0
    for index, case in enumerate(cases):
        reasons = case.get("peers", {})
        problems += [f"{case['name']}: unknown peer {name}" for name in reasons if name not in peers]
        if ours[index][1] != case["valid"]:
            problems.append(f"{case['name']}: our own verdict is not the vector's")
        for name, verdicts in peers.items():
            found = difference(ours[index], verdicts[index])
            if found and name not in reasons:
                problems.append(f"{case['name']}: {name} {found} this document, and the vector does not say why")
            elif not found and name in reasons:
                problems.append(f"{case['name']}: {name} agrees; the explanation is not needed")
            elif found:
                explained += 1
    for problem in problems:
        print(problem)
    print(f"{len(cases)} cases, {len(peers)} peers: {explained} explained differences, {len(problems)} problems")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
