// Panics in the client, which tests cause on purpose: each ends as an error of its call. Only builds with debug assertions
// can panic on purpose, so packages are tested without this file (`cargo xtask test --packages`).

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";

import { Client, check, InternalError, report, webhooks } from "gatewright";

import { startGateway } from "./support/gateway.mjs";

const PROMPT = { model: "model-sol", messages: [{ role: "user", content: "Hi" }] };
const TASK = { id: "t1", status: "processing", created: 1, model: "m" };

const { engine } = createRequire(import.meta.url)("../dist/engine.js");

const broke = (error) => error instanceof InternalError && /the client itself failed/.test(error.message);

function panicAt(t, place) {
  engine.panicAt(place);
  t.after(() => engine.panicAt("nowhere"));
}

test("a panic in a call is an error of that call", async (t) => {
  const client = new Client(await startGateway(t));
  for (const place of ["call", "answer"]) {
    panicAt(t, place);
    await assert.rejects(client.models.list(), broke);
  }
  panicAt(t, "call");
  await assert.rejects(client.videos.generations.wait("t1"), broke);
  await assert.rejects(client.chat.completions.create({ ...PROMPT, stream: true }), broke);
  engine.panicAt("nowhere");
  assert.ok((await client.models.list()).data.length > 0);
});

test("a panic in a stream ends it for its reader", async (t) => {
  const client = new Client(await startGateway(t));
  const open = () => client.chat.completions.create({ ...PROMPT, stream: true });
  const [stream, text, whole] = [await open(), await open(), await open()];
  panicAt(t, "stream");
  const events = stream[Symbol.asyncIterator]();
  await assert.rejects(events.next(), broke);
  assert.equal((await events.next()).done, true);
  await assert.rejects(async () => {
    for await (const _ of text.text()) assert.fail("no text can come");
  }, broke);
  await assert.rejects(whole.finalChatCompletion(), broke);
  engine.panicAt("nowhere");
  assert.ok((await (await open()).finalChatCompletion()).choices.length > 0);
});

test("a panic in a callback or client constructor is an error", async (t) => {
  const gateway = await startGateway(t);
  const client = new Client({ ...gateway, middleware: [{ before() {} }] });
  panicAt(t, "callback");
  await assert.rejects(client.models.list(), broke);
  panicAt(t, "build");
  assert.throws(() => new Client(gateway), broke);
});

test("a panic in report processing is an error", async (t) => {
  const validator = new report.Validator();
  panicAt(t, "report");
  const makes = [
    () => validator.validate("{}"),
    () => validator.html("{}"),
    () => validator.junit("{}"),
    () => validator.sarif("{}"),
    () => validator.githubAnnotations("{}"),
    () => validator.canonical("{}"),
    () => validator.diff("{}", "{}"),
  ];
  for (const make of makes) assert.throws(make, broke);
  const judged = [];
  for await (const one of validator.validateMany([Buffer.from("{}")])) judged.push(one);
  assert.ok(judged.length === 1 && broke(judged[0].error));
  const lines = validator.ndjson();
  lines.end("{}\n");
  await assert.rejects(lines.toArray(), broke);
  engine.panicAt("nowhere");
  assert.equal(validator.validate("{}").valid, false);
});

test("a panic in webhook processing is an error", (t) => {
  const body = JSON.stringify(TASK);
  panicAt(t, "webhook");
  assert.throws(() => webhooks.unwrap(body, {}, "whsec_c2VjcmV0"), broke);
  assert.throws(() => webhooks.parseUnsigned(body), broke);
  engine.panicAt("nowhere");
  assert.equal(webhooks.parseUnsigned(body).id, "t1");
});

test("a panic in the program is an error", (t) => {
  panicAt(t, "program");
  const { runProgram } = createRequire(import.meta.url)("../dist/cli.js");
  assert.throws(() => runProgram(["--version"]), broke);
});

test("a panic in a check run is its error", async (t) => {
  const { baseUrl, apiKey } = await startGateway(t);
  const run = () => check(baseUrl, { apiKey, only: ["models_endpoint"] });
  panicAt(t, "check");
  await assert.rejects(run(), broke);
  engine.panicAt("nowhere");
  const result = await run();
  panicAt(t, "check");
  await assert.rejects(result.write("/nowhere/report.json"), broke);
  await assert.rejects(result.writeEvidence("/nowhere"), broke);
  await assert.rejects(result.writeProtocols("/nowhere/report.protocols.json"), broke);
});
