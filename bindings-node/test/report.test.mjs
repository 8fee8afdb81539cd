// The report validator (2.12), tested with the vectors that all three languages read.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { report } from "gatewright";

import { readVectors, vectorFiles } from "./support/vectors.mjs";

/** The bytes of a case; `tests/vectors/README.md` describes the format. */
function documentOf(vector) {
  if (vector.base64 !== undefined) return Buffer.from(vector.base64, "base64");
  if (vector.text !== undefined) return Buffer.from([vector.text].flat().join("\n"));
  const document =
    vector.document !== undefined
      ? structuredClone(vector.document)
      : readVectors(`report/bases/${vector.base}.json`);
  const edit = (pointer, change) => {
    const steps = pointer
      .slice(1)
      .split("/")
      .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
    const last = steps.pop();
    change(
      steps.reduce((value, step) => value[step], document),
      last,
    );
  };
  const set = (pointer, value) =>
    edit(pointer, (parent, step) => {
      // An assignment to "__proto__" would change the object's prototype.
      Object.defineProperty(parent, step, { value, enumerable: true, configurable: true, writable: true });
    });
  for (const [pointer, value] of Object.entries(vector.set ?? {})) set(pointer, value);
  for (const pointer of vector.remove ?? []) {
    edit(pointer, (parent, step) => {
      if (Array.isArray(parent)) parent.splice(Number(step), 1);
      else delete parent[step];
    });
  }
  for (const [pointer, [text, times]] of Object.entries(vector.fill ?? {})) set(pointer, text.repeat(times));
  const raw = Object.entries(vector.raw ?? {});
  raw.forEach(([pointer], index) => {
    set(pointer, `@raw ${index}@`);
  });
  const text = raw.reduce(
    (text, [, value], index) => text.replaceAll(`"@raw ${index}@"`, () => value),
    JSON.stringify(document),
  );
  return Buffer.from(text);
}

/** The findings, each reduced to the members that the vector names. */
const likewise = (found, expected) =>
  found.map((finding, index) =>
    Object.fromEntries(Object.keys(expected[index] ?? finding).map((key) => [key, finding[key]])),
  );

const CAMEL = {
  models: "models",
  kit_name: "kitName",
  own_names: "ownNames",
  strict: "strict",
  max_bytes: "maxBytes",
  max_findings: "maxFindings",
};

for (const file of vectorFiles("report")) {
  test(`vectors: report/${file}`, () => {
    const { cases } = readVectors(`report/${file}`);
    assert.ok(cases.length > 0);
    for (const vector of cases) {
      const options = Object.entries(vector.options ?? {}).map(([name, value]) => [CAMEL[name], value]);
      const outcome = report.validate(
        documentOf(vector),
        options.length > 0 ? Object.fromEntries(options) : undefined,
      );
      const { violations = [], advisories = [], more_violations = 0, more_advisories = 0 } = vector;
      assert.equal(outcome.valid, vector.valid, vector.name);
      assert.deepEqual(likewise(outcome.violations, violations), violations, vector.name);
      assert.deepEqual(likewise(outcome.advisories, advisories), advisories, vector.name);
      assert.equal(outcome.more_violations, more_violations, vector.name);
      assert.equal(outcome.more_advisories, more_advisories, vector.name);
    }
  });
}

test("a document may be bytes, text or a file", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "gatewright-"));
  t.after(() => rm(folder, { recursive: true }));
  const text = JSON.stringify(readVectors("report/bases/full.json"));
  const path = join(folder, "report.json");
  writeFileSync(path, text);
  const outcomes = [
    report.validate(text),
    report.validate(Buffer.from(text)),
    report.validate(new Uint8Array(Buffer.from(text))),
    report.validate({ path }),
    await report.validateFile(path),
    new report.Validator({ strict: true }).validate(text),
  ];
  const clean = { valid: true, violations: [], advisories: [], more_violations: 0, more_advisories: 0 };
  for (const outcome of outcomes) assert.deepEqual(outcome, clean);
});

test("a file is read only up to the limit", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "gatewright-"));
  t.after(() => rm(folder, { recursive: true }));
  const path = join(folder, "report.json");
  writeFileSync(path, " ".repeat(5000));
  const validator = new report.Validator({ maxBytes: 1000 });
  const message = "the document has 1001 bytes";
  for (const { violations } of [validator.validate({ path }), await validator.validateFile(path)]) {
    assert.deepEqual(
      violations.map((violation) => violation.message),
      [message],
    );
  }
  assert.throws(() => validator.canonical({ path }), { name: "InvalidReport", message });
});

test("a pipe that delivers little at a time is read to its end", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "gatewright-"));
  t.after(() => rm(folder, { recursive: true }));
  const pipe = join(folder, "pipe");
  execFileSync("mkfifo", [pipe]);
  // As many writes as bytes, a moment apart, so that a read finds one byte or a few.
  const write = `exec 3>"$0"; for i in $(seq 60); do printf x >&3; sleep 0.005; done`;
  const writer = spawn("sh", ["-c", write, pipe]);
  const { violations } = new report.Validator({ maxBytes: 59 }).validate({ path: pipe });
  assert.equal(violations[0].message, "the document has 60 bytes");
  if (writer.exitCode === null) await once(writer, "exit");
});

test("a file that cannot be read is an error, not a verdict", async () => {
  const path = "/nowhere/report.json";
  const refused = { name: "FileError", message: /^\/nowhere\/report\.json: No such file/ };
  assert.throws(() => report.validate({ path }), refused);
  await assert.rejects(report.validateFile(path), refused);
});

test("a violation has its position in the text, and a readable message", () => {
  const { valid, violations } = report.validate('{\n  "schema_version": "2.0"\n}');
  assert.equal(valid, false);
  const [{ message, section, ...place }] = violations.filter(({ rule }) => rule === "const");
  assert.deepEqual(place, {
    pointer: "/schema_version",
    line: 2,
    column: 21,
    rule: "const",
    property: null,
    expected: '"1.0"',
    found: '"2.0"',
  });
  assert.match(message, /^\/schema_version: /);
  assert.equal(section, "2.12");
});
