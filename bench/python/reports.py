"""Validates a report: `reports.py WAY FILE COUNT SCHEMA`. An invalid one has `invalid` in its name."""

import json
from pathlib import Path

from measured import COUNT, HOST, MODEL, WORK, measure

DOCUMENT = Path(MODEL).read_bytes()
SCHEMA = json.loads(Path(HOST).read_bytes())
VALID = "invalid" not in MODEL


def ours():
    from gatewright.report import Validator

    validator = Validator()

    def judge() -> bool:
        outcome = validator.validate(DOCUMENT)
        # All findings, with their places.
        places = [(violation.line, violation.column) for violation in outcome.violations]
        return outcome.valid and not places

    return judge


def jsonschema_rs():
    import jsonschema_rs
    import orjson

    validator = jsonschema_rs.Draft202012Validator(SCHEMA, validate_formats=True)
    return lambda: validator.is_valid(orjson.loads(DOCUMENT))


def fastjsonschema():
    import fastjsonschema
    import orjson

    # It supports drafts up to 7; the only later feature of the schema is `$defs`, which it resolves.
    validate = fastjsonschema.compile(SCHEMA | {"$schema": "http://json-schema.org/draft-07/schema#"})

    def judge() -> bool:
        try:
            validate(orjson.loads(DOCUMENT))
        except fastjsonschema.JsonSchemaValueException:
            return False
        return True

    return judge


def orjson_alone():
    import orjson

    return lambda: bool(orjson.loads(DOCUMENT)) and VALID


WAYS = {
    "ours": ours,
    "jsonschema-rs": jsonschema_rs,
    "fastjsonschema": fastjsonschema,
    "orjson": orjson_alone,
}

judge = WAYS[WORK]()
measure(lambda: int(judge() == VALID), COUNT, 1, bytes=len(DOCUMENT))
