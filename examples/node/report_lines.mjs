// Validates NDJSON, one report per line, as a stream; then renders a report as a page. Needs no gateway.
import { readFileSync, writeFileSync } from "node:fs";
import { Readable } from "node:stream";

import { report } from "gatewright";

const [good, broken] = ["good", "broken"].map((name) =>
  readFileSync(new URL(`../reports/${name}.json`, import.meta.url), "utf8"),
);
const lines = [good, broken, good].map((text) => `${JSON.stringify(JSON.parse(text))}\n`);

// Any stream of bytes: a file, standard input, a response's body.
for await (const { line, outcome } of Readable.from(lines, { objectMode: false }).pipe(report.ndjson())) {
  console.log(`line ${line}: ${outcome.valid ? "valid" : outcome.violations[0].message}`);
}

// Strings are paths; a document is its bytes, or { text }.
const documents = [{ text: good }, { text: broken }];
for await (const { position, outcome } of report.validateMany(documents, { ordered: true })) {
  console.log(`document ${position}: ${outcome?.valid ? "valid" : "invalid"}`);
}

writeFileSync("report.html", report.html(good));
