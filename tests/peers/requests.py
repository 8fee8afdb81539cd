"""Validates the request vectors with ajv, jsonschema and jsonschema-rs, as third parties would: with the specification itself.

    python requests.py

Needs what compare.py needs. Each body of tests/vectors/limits is validated with the schema of its operation in the
specification (its JSON form, spec/generated/openapi-3.2.json) and in core/src/api/generated/requests.schema.json. Every
peer accepts with both schemas what a vector accepts. All peers agree on what it rejects, and reject it if only schema
rules are broken (the limits of a model are in the catalog, not in a schema). An unknown kind fits every open union.
"""

import json
import pathlib
import sys
import tempfile

import jsonschema
import jsonschema_rs

import compare

ROOT = compare.HERE.parents[1]
OPENAPI = json.loads((ROOT / "spec/generated/openapi-3.2.json").read_text("utf-8"))
REQUESTS = json.loads((ROOT / "core/src/api/generated/requests.schema.json").read_text("utf-8"))
CASES = json.loads((ROOT / "tests/vectors/limits/requests.json").read_text("utf-8"))["cases"]


def schemas(name):
    """A named schema in both documents."""
    dialect = "https://json-schema.org/draft/2020-12/schema"
    components = {"components": {"schemas": OPENAPI["components"]["schemas"]}}
    yield "openapi", {"$schema": dialect, "$ref": f"#/components/schemas/{name}", **components}
    if name in REQUESTS["$defs"]:
        yield "requests", {"$schema": dialect, "$ref": f"#/$defs/{name}", "$defs": REQUESTS["$defs"]}


def verdicts(name, bodies, folder):
    """By document and peer: whether each body is accepted."""
    files = []
    for index, body in enumerate(bodies):
        file = pathlib.Path(folder, f"{name}-{index:04}.json")
        file.write_text(json.dumps(body), "utf-8")
        files.append(str(file))
    for document, schema in schemas(name):
        file = pathlib.Path(folder, f"{name}-{document}.schema.json")
        file.write_text(json.dumps(schema), "utf-8")
        compare.SCHEMA = file
        yield (document, "ajv"), [valid for _, valid, _ in compare.ajv(files)]
        formats = jsonschema.Draft202012Validator.FORMAT_CHECKER
        peer = jsonschema.Draft202012Validator(schema, format_checker=formats)
        yield (document, "jsonschema"), [peer.is_valid(body) for body in bodies]
        peer = jsonschema_rs.validator_for(schema, validate_formats=True)
        yield (document, "jsonschema-rs"), [peer.is_valid(body) for body in bodies]


def judge_vectors(folder):
    by_operation = {}
    for case in CASES:
        by_operation.setdefault(case["operation"], []).append(case)
    for operation, cases in by_operation.items():
        name = REQUESTS["operations"][operation]["body"]
        judged = dict(verdicts(name, [case["body"] for case in cases], folder))
        for index, case in enumerate(cases):
            found = {peer: valid[index] for peer, valid in judged.items()}
            if not case["violations"] and not all(found.values()):
                yield f"{operation}: {case['name']}: accepted by us, refused by {[p for p, v in found.items() if not v]}"
            elif len(set(found.values())) > 1:
                yield f"{operation}: {case['name']}: accepted by {[p for p, v in found.items() if v]} alone"


def judge_unknown_kinds(folder):
    unions = [name for name, schema in OPENAPI["components"]["schemas"].items() if schema.get("x-open-union")]
    if not unions:
        yield "the specification has no open union"
    # An unknown kind; a kind that is not a string; no kind.
    bodies = [{"type": "a-kind-of-tomorrow", "more": [1]}, {"type": 7}, {}]
    for name in unions:
        for peer, valid in verdicts(name, bodies, folder):
            if valid != [True, False, False]:
                yield f"{name}: {peer} judges an unknown kind, a kind that is no text and none as {valid}"


def main():
    with tempfile.TemporaryDirectory(prefix="gatewright-peers-") as folder:
        problems = [*judge_vectors(folder), *judge_unknown_kinds(folder)]
    for problem in problems:
        print(problem)
    print(f"{len(CASES)} requests, 3 peers, 2 documents: {len(problems)} problems")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
