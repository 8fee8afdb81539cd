"""Validate a compatibility report, with every violation at once. Needs no gateway."""

from gatewright import report

outcome = report.validate('{\n  "schema_version": "2.0",\n  "kit": {"name": "gatewright-checkkit"}\n}')
print("valid" if outcome.valid else f"{len(outcome.violations)} violations")
for violation in outcome.violations:
    print(f"{violation.line}:{violation.column}: {violation.message}")

# Models and kit of another deployment. Reuse a validator: creating one compiles the schema.
validator = report.Validator(models=["our-model"], kit_name="our-kit", strict=True)
print(validator.validate(b"[]").violations[0].rule)
