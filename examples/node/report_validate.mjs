// Validates compatibility reports. Usage: node report_validate.mjs FILE…; needs no gateway.
import { report } from "gatewright";

const examples = ["good", "broken"].map(
  (name) => new URL(`../reports/${name}.json`, import.meta.url).pathname,
);
const files = process.argv.length > 2 ? process.argv.slice(2) : examples;

for (const path of files) {
  const { valid, violations, advisories } = await report.validateFile(path);
  console.log(`${path}: ${valid ? "valid" : "invalid"}`);
  for (const { line, column, message } of [...violations, ...advisories]) {
    console.log(`  ${line}:${column}: ${message}`);
  }
}
