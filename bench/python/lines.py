"""Validates the reports of an NDJSON file with jsonschema-rs, one verdict per line: `lines.py FILE
SCHEMA`."""

import json
import sys
from pathlib import Path

import jsonschema_rs
import orjson

SCHEMA = json.loads(Path(sys.argv[2]).read_bytes())

validator = jsonschema_rs.Draft202012Validator(SCHEMA, validate_formats=True)
with open(sys.argv[1], "rb") as lines:
    for line in lines:
        verdict = "true" if validator.is_valid(orjson.loads(line)) else "false"
        sys.stdout.write(f'{{"valid":{verdict}}}\n')
