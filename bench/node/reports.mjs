// Validates a report: `reports.mjs WAY FILE COUNT SCHEMA`. An invalid one has `invalid` in its name.
import { readFileSync } from "node:fs";
import { measure } from "./measured.mjs";

const [way, file, count, schema] = process.argv.slice(2);
const document = readFileSync(file);
const isValid = !file.includes("invalid");

const ways = {
  async ours() {
    const { report } = await import("gatewright");
    const validator = new report.Validator();
    return () => {
      const { valid, violations } = validator.validate(document);
      // All findings, with their places.
      const places = violations.map(({ line, column }) => line + column);
      return valid && places.length === 0;
    };
  },
  async ajv() {
    const { default: Ajv2020 } = await import("ajv/dist/2020.js");
    const { default: addFormats } = await import("ajv-formats");
    // strict is about the style of schemas, not about what they accept: it rejects annotations such as
    // x-source.
    const ajv = new Ajv2020({ strict: false });
    addFormats(ajv);
    const validate = ajv.compile(JSON.parse(readFileSync(schema, "utf8")));
    return () => validate(JSON.parse(document.toString()));
  },
  async parse() {
    return () => typeof JSON.parse(document.toString()) === "object" && isValid;
  },
};

const judge = await ways[way]();
await measure(() => Number(judge() === isValid), {
  times: Number(count),
  bytes: document.length,
});
