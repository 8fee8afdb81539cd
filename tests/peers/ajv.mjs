// Validates documents with ajv: `node ajv.mjs SCHEMA FILE...` prints one verdict per file and line, as
// compare.py reads it.

import { readFileSync } from "node:fs";
import Ajv2020 from "ajv/dist/2020.js";
import addFormats from "ajv-formats";

const [schemaFile, ...files] = process.argv.slice(2);
// strict is about the style of schemas, not about what they accept: it rejects annotations such as x-source.
const ajv = new Ajv2020({ allErrors: true, strict: false });
addFormats(ajv);
const validate = ajv.compile(JSON.parse(readFileSync(schemaFile, "utf8")));

// These only wrap the errors of their subschemas, which ajv reports too.
const applicators = new Set(["if", "anyOf"]);

function judge(file) {
  let document;
  try {
    document = JSON.parse(readFileSync(file, "utf8"));
  } catch {
    return { read: false, valid: false, findings: [] };
  }
  const valid = validate(document);
  const errors = (validate.errors ?? []).filter((error) => !applicators.has(error.keyword));
  return { read: true, valid, findings: errors.map((error) => [error.instancePath, error.keyword]) };
}

for (const file of files) {
  console.log(JSON.stringify(judge(file)));
}
