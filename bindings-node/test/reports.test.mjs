// Processing reports: many verdicts at once, NDJSON, pages, JUnit, comparisons, the canonical form.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Duplex, Readable } from "node:stream";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { FileError, report } from "gatewright";

import { readVectors } from "./support/vectors.mjs";

const base = (name) =>
  fileURLToPath(new URL(`../../tests/vectors/report/bases/${name}.json`, import.meta.url));
const full = readFileSync(base("full"));
const minimal = readFileSync(base("minimal"), "utf8");
const line = JSON.stringify(JSON.parse(minimal));

const gathered = async (results) => {
  const all = [];
  for await (const one of results) all.push(one);
  return all;
};

const inFolder = async (run) => {
  const folder = await mkdtemp(join(tmpdir(), "gatewright-"));
  try {
    await run(folder);
  } finally {
    await rm(folder, { recursive: true });
  }
};

test("many documents are validated in any order", async () => {
  const documents = Array.from({ length: 300 }, (_, index) => Buffer.from(index % 3 === 0 ? "{}" : minimal));
  const judged = await gathered(report.validateMany(documents));
  assert.deepEqual(
    judged.map((one) => one.position).sort((left, right) => left - right),
    [...documents.keys()],
  );
  for (const one of judged) {
    assert.equal(one.source, documents[one.position]);
    assert.equal(one.outcome.valid, one.position % 3 !== 0);
    assert.equal(one.error, undefined);
  }
});

test("ordered results arrive in document order, from any iterable", async () => {
  async function* documents() {
    for (let index = 0; index < 200; index += 1) yield index % 2 === 0 ? { text: minimal } : full;
  }
  const judged = await gathered(report.validateMany(documents(), { ordered: true }));
  assert.deepEqual(
    judged.map((one) => one.position),
    [...Array(200).keys()],
  );
});

test("verdicts match validate", async () => {
  const texts = ["{}", minimal, '{"a": 1, "a": 2}', "\ud800", ""].map((text) => ({ text }));
  const documents = [...texts, full, Buffer.alloc(0), { path: base("full") }];
  for (const one of await gathered(report.validateMany(documents))) {
    assert.deepEqual(one.outcome, report.validate(one.source));
  }
});

test("a file that cannot be read is a result with an error", async () => {
  const judged = await gathered(
    report.validateMany([{ path: base("full") }, { path: "missing.json" }], { ordered: true }),
  );
  assert.equal(judged[0].outcome.valid, true);
  assert.ok(judged[1].error instanceof FileError);
  assert.match(judged[1].error.message, /missing\.json: No such file/);
  assert.equal(judged[1].outcome, undefined);
});

test("a string is a path, and blank lines are skipped", async () => {
  const items = [
    base("full"),
    Buffer.from("\r\n"),
    "missing.json",
    Buffer.from(" \n"),
    Buffer.from("\n{}\n"),
  ];
  const judged = await gathered(report.validateMany([...items, Buffer.alloc(0)], { ordered: true }));
  assert.deepEqual(
    judged.map((one) => [one.position, one.outcome?.valid]),
    [
      [0, true],
      [2, undefined],
      [4, false],
      [5, false],
    ],
  );
  assert.equal(judged[0].source, items[0]);
  assert.match(judged[1].error.message, /missing\.json: No such file/);
  for (const one of [base("full"), full]) await assert.rejects(gathered(report.validateMany(one)), TypeError);
  const [text] = await gathered(report.validateMany([minimal]));
  assert.match(text.error.message, /a string is a path here: give the text of a document as \{ text \}/);
});

test("a report is taken as check returns it", async () => {
  const document = JSON.parse(full);
  assert.equal(report.validate(document).valid, true);
  assert.deepEqual(report.diff(document, full).worse, []);
  const [judged] = await gathered(report.validateMany([document]));
  assert.equal(judged.outcome.valid, true);
  delete document.kit;
  assert.deepEqual(
    report.validate(document).violations.map((violation) => violation.message),
    ["kit is missing"],
  );
});

test("the name of a file in place of its text is reported", () => {
  const [violation] = report.validate("runs/report.json").violations;
  assert.match(violation.message, /this is the name of a file/);
  assert.throws(() => report.html("runs/report.json"), /this is the name of a file/);
});

test("documents are read ahead only up to a limit, and the loop may be left early", async () => {
  let taken = 0;
  function* documents() {
    for (;;) {
      taken += 1;
      yield { text: minimal };
    }
  }
  let fetched = 0;
  for await (const _ of report.validateMany(documents())) {
    fetched += 1;
    assert.ok(taken <= fetched + 256, `${taken} taken, ${fetched} fetched`);
    if (fetched === 300) break;
  }
  assert.equal(fetched, 300);
});

test("an error of the iterable reaches the caller", async () => {
  async function* documents() {
    yield { text: minimal };
    throw new RangeError("source");
  }
  await assert.rejects(gathered(report.validateMany(documents())), RangeError);
});

test("options apply to every document", async () => {
  const ours = minimal.replaceAll("model-sol", "a").replace("gatewright-checkkit", "our-kit");
  const options = { models: ["a"], kitName: "our-kit", strict: true, ordered: true };
  const documents = [ours, minimal].map((text) => ({ text }));
  const judged = await gathered(report.validateMany(documents, options));
  assert.deepEqual(
    judged.map((one) => one.outcome.valid),
    [true, false],
  );
});

test("the event loop keeps running while a large document is validated", async () => {
  let ticks = 0;
  const timer = setInterval(() => {
    ticks += 1;
  }, 1);
  await gathered(report.validateMany([Buffer.from(`[${"0,".repeat(3_000_000)}0]`)]));
  clearInterval(timer);
  assert.ok(ticks > 5, `${ticks} ticks`);
});

/** The same bytes give the same lines, however they are split. */
test("NDJSON lines are validated in order, however the bytes are split", async () => {
  const text = Buffer.from(`${line}\r\n\n  \n{"é": 1}\n${line}\n[]`);
  const expected = [
    [1, true],
    [4, false],
    [5, true],
    [6, false],
  ];
  for (const size of [1, 2, 7, 100, text.length]) {
    const chunks = [];
    for (let at = 0; at < text.length; at += size) chunks.push(text.subarray(at, at + size));
    const judged = await gathered(Readable.from(chunks, { objectMode: false }).pipe(report.ndjson()));
    assert.deepEqual(
      judged.map((one) => [one.line, one.outcome.valid]),
      expected,
    );
  }
});

test("a line over the limit is rejected for its size and the next one is complete", async () => {
  const stream = Readable.from([Buffer.from("x".repeat(5000)), Buffer.from(`\n${line}`)]);
  const judged = await gathered(stream.pipe(report.ndjson({ maxBytes: line.length })));
  assert.equal(judged[0].outcome.violations[0].rule, "size");
  assert.match(judged[0].outcome.violations[0].message, new RegExp(`${line.length + 1} bytes`));
  assert.equal(judged[1].outcome.valid, true);
});

test("a CR before the line break does not count toward the limit", async () => {
  const stream = Readable.from([Buffer.from(`${line}\r\n${line} \r\n`)]);
  const judged = await gathered(stream.pipe(report.ndjson({ maxBytes: line.length })));
  assert.deepEqual(
    judged.map((one) => one.outcome.valid),
    [true, false],
  );
});

test("an abandoned stream of lines ends", async () => {
  const stream = report.ndjson();
  for (let count = 0; count < 1000; count += 1) stream.write(`${line}\n`);
  for await (const judged of stream) {
    assert.equal(judged.line, 1);
    break;
  }
  assert.equal(stream.destroyed, true);
});

test("bytes of any kind are documents, and may change once they are passed in", async () => {
  const bytes = new Uint8Array(Buffer.from(minimal));
  function* documents() {
    yield bytes;
    bytes.fill(0);
  }
  const [judged] = await gathered(report.validateMany(documents()));
  assert.equal(judged.outcome.valid, true);
});

test("a stream converts to a web stream", async () => {
  const source = new Blob([`${line}\n{}\n`]).stream();
  const judged = await gathered(source.pipeThrough(Duplex.toWeb(report.ndjson())));
  assert.deepEqual(
    judged.map((one) => one.outcome.valid),
    [true, false],
  );
});

test("a page contains the evidence and links to it", () =>
  inFolder(async (folder) => {
    const evidence = join(folder, "evidence");
    await mkdir(evidence);
    const seen = { what: "HTTP status", expected: "200", observed: "<500>", held: false };
    const cell = { id: "responses_text", model: "model-sol", assertions: [seen], exchange: null };
    await writeFile(join(evidence, "02.json"), JSON.stringify(cell));
    const page = report.html(full, { evidence, page: join(folder, "page.html") });
    assert.match(page, /href="\.\/evidence\/02\.json"/);
    assert.match(page, /&lt;500&gt;/);
    assert.doesNotMatch(page, /<script/);
    await writeFile(join(evidence, "03.json"), "{}");
    assert.throws(() => report.html(full, { evidence }), FileError);
  }));

test("JUnit and annotations name the failures", () => {
  assert.match(report.junit({ path: base("full") }), /<testsuites name="[^"]*" tests="9" failures="2"/);
  const lines = report.githubAnnotations(full).trimEnd().split("\n");
  assert.equal(lines.length, 2);
  for (const one of lines) assert.match(one, /^::error title=/);
});

test("SARIF places the failures in the document", () => {
  const places = (log) =>
    JSON.parse(log).runs[0].results.map(({ locations: [{ physicalLocation: place }] }) => [
      place.artifactLocation.uri,
      place.region.startLine,
    ]);
  const [[uri, first], [, second]] = places(report.sarif({ path: base("full") }));
  assert.match(uri, /\/full\.json$/);
  assert.ok(first > 1 && second > first);
  const onOneLine = JSON.stringify(JSON.parse(full));
  assert.deepEqual(places(report.sarif(onOneLine)), [
    ["report.json", 1],
    ["report.json", 1],
  ]);
  assert.equal(places(report.sarif(onOneLine, { path: "runs/a.json" }))[0][0], "runs/a.json");
});

const protocolVectors = readVectors("report-forms/protocols.json");
for (const { name, set, violations } of protocolVectors.cases) {
  test(`additional checks: ${name}`, () => {
    const document = structuredClone(protocolVectors.document);
    for (const [pointer, value] of Object.entries(set)) {
      const steps = pointer.slice(1).split("/");
      const last = steps.pop();
      steps.reduce((parent, step) => parent[step], document)[last] = value;
    }
    const outcome = report.validate(document);
    assert.deepEqual(
      outcome.violations.map(({ pointer, rule }) => ({ pointer, rule })),
      violations,
    );
    assert.equal(outcome.valid, violations.length === 0);
    for (const { section } of outcome.violations) assert.equal(section, "ours");
    if (outcome.valid) {
      assert.match(report.html(document), /Other protocols/);
      assert.match(report.html(full, { protocols: document }), /Other protocols/);
      assert.match(report.githubAnnotations(document), /^::error title=messages_text model-sol::/);
    } else {
      assert.throws(() => report.html(document), report.InvalidReport);
      assert.throws(() => report.html(full, { protocols: document }), report.InvalidReport);
    }
    assert.throws(() => report.junit(document), report.InvalidReport);
  });
}

test("an invalid report is rejected with its verdict", () => {
  for (const make of [report.html, report.junit, report.sarif, report.githubAnnotations, report.canonical]) {
    assert.throws(
      () => make("["),
      (error) =>
        error instanceof report.InvalidReport &&
        error.name === "InvalidReport" &&
        error.outcome.violations[0].rule === "syntax",
    );
  }
  assert.throws(() => report.diff('{"schema_version": "1.0"}', full), /kit is missing.*and \d+ more/);
  assert.throws(() => report.junit({ path: "missing.json" }), FileError);
});

test("a comparison is data or a page", () => {
  const slower = full.toString().replace('"duration_ms": 340', '"duration_ms": 3400');
  const comparison = report.diff(full, slower);
  assert.deepEqual(comparison.slower, [
    { id: "responses_text", model: "model-sol", old_ms: 340, new_ms: 3400 },
  ]);
  assert.deepEqual(report.diff(full, slower, { slowerMs: 3060 }).slower, []);
  assert.deepEqual(report.diff(full, slower, { slowerPercent: 900 }).slower, []);
  assert.match(report.diffHtml(full, slower), /Nothing got worse/);
});

for (const { name, text, canonical } of readVectors("report-forms/canonical.json").cases) {
  test(`canonical form: ${name}`, () => assert.equal(report.canonical(text), canonical));
}

for (const { name, text, hex, lines } of readVectors("report-forms/lines.json").cases) {
  test(`lines: ${name}`, async () => {
    const bytes = hex === undefined ? Buffer.from(text) : Buffer.from(hex, "hex");
    const judged = await gathered(Readable.from([bytes], { objectMode: false }).pipe(report.ndjson()));
    assert.deepEqual(
      judged.map(({ line, outcome }) => ({ line, rule: outcome.violations[0].rule })),
      lines,
    );
  });
}

for (const { name, strict, set, says } of readVectors("report-forms/refused.json").cases) {
  test(`refusal: ${name}`, () => {
    const document = JSON.parse(full);
    for (const [pointer, value] of Object.entries(set)) {
      const steps = pointer.slice(1).split("/");
      const last = steps.pop();
      steps.reduce((parent, step) => parent[step], document)[last] = value;
    }
    const validator = new report.Validator({ strict, maxFindings: 1 });
    assert.throws(() => validator.junit(JSON.stringify(document)), { name: "InvalidReport", message: says });
  });
}

for (const vector of readVectors("report-forms/diff.json").cases) {
  test(`comparison: ${vector.name}`, () => {
    const document = (edits) => {
      const edited = JSON.parse(full);
      for (const [pointer, value] of Object.entries(edits)) {
        const steps = pointer.slice(1).split("/");
        const last = steps.pop();
        steps.reduce((parent, step) => parent[step], edited)[last] = value;
      }
      return JSON.stringify(edited);
    };
    const { old, new: now, thresholds, ...found } = report.diff(document(vector.old), document(vector.new));
    const lists = Object.entries(found).filter(([, cells]) => cells.length > 0);
    assert.deepEqual(Object.fromEntries(lists), vector.diff);
    assert.deepEqual(thresholds, { percent: 50, ms: 200 });
    assert.equal(old.overall_status, now.overall_status);
  });
}
