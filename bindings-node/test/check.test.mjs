// The check kit from Node: the same run as the program's, with events.

import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { CancelledError, ConfigurationError, check, FileError, report } from "gatewright";

import { startGateway } from "./support/gateway.mjs";
import { serve } from "./support/server.mjs";

test("a compatible gateway passes and every step is told", async (t) => {
  const { baseUrl, apiKey } = await startGateway(t);
  const events = [];
  const result = await check(baseUrl, {
    apiKey,
    models: ["model-terra"],
    onProgress: (event) => events.push(event),
  });
  assert.equal(result.passed, true);
  assert.deepEqual(result.report.summary, { passed: 5, failed: 0, skipped: 1 });
  assert.equal(report.validate(result.json, { strict: true }).valid, true);
  assert.equal(result.report.environment.runtime_version, process.version);
  assert.deepEqual(events[0], { event: "planned", cells: 6, to_run: 5 });
  const finished = events.filter((event) => event.event === "finished").map((event) => event.check);
  assert.deepEqual(finished, result.report.checks);
  assert.equal(result.evidence.length, 5);
  assert.ok(!JSON.stringify([result.json, result.evidence, events]).includes(apiKey));

  const folder = await mkdtemp(join(tmpdir(), "gatewright-"));
  t.after(() => rm(folder, { recursive: true }));
  await result.write(join(folder, "report.json"));
  assert.equal(await readFile(join(folder, "report.json"), "utf8"), result.json);
  const names = await result.writeEvidence(join(folder, "evidence"));
  const read = await Promise.all(names.map((name) => readFile(join(folder, "evidence", name), "utf8")));
  assert.deepEqual(
    read.map((text) => JSON.parse(text)),
    result.evidence,
  );
  await assert.rejects(result.write(join(folder, "missing", "report.json")), FileError);
});

test("a key that is refused fails the checks and is told nowhere", async (t) => {
  const { baseUrl } = await startGateway(t);
  const result = await check(baseUrl, { apiKey: "wrong-canary-key", only: ["models_endpoint"] });
  assert.equal(result.passed, false);
  assert.equal(result.report.checks[0].error.category, "auth");
  assert.ok(!JSON.stringify([result.json, result.evidence]).includes("canary"));
});

test("options out of bounds are refused all at once", async () => {
  const refused = check("http://127.0.0.1:9", { apiKey: "k", timeoutMs: 1, models: ["model-mars"] });
  await assert.rejects(refused, (error) => {
    assert.ok(error instanceof ConfigurationError);
    assert.match(error.message, /timeout_ms must be from 1000 to 120000, not 1 \(2\.12\).*model-mars/);
    return true;
  });
  await assert.rejects(check("http://127.0.0.1:9", { apiKey: "" }), /the API key is empty/);
});

test("kit name and models come from a profile", async (t) => {
  const { baseUrl, apiKey } = await startGateway(t);
  const models = ["model-sol"];
  const result = await check(baseUrl, { apiKey, profile: { kitName: "our-kit", models }, parallel: true });
  assert.equal(result.passed, true);
  assert.equal(report.validate(result.json, { kitName: "our-kit", models }).valid, true);
});

test("a signal ends a run at once, before and in the middle", async (t) => {
  // Never answers.
  const { url, sockets } = await serve(t, () => {});
  const controller = new AbortController();
  const reason = new Error("enough");
  const onProgress = ({ event }) => event === "started" && controller.abort(reason);
  const running = check(url, { apiKey: "k", timeoutMs: 120_000, onProgress, signal: controller.signal });
  const rejects = (promise) =>
    assert.rejects(promise, (error) => error instanceof CancelledError && error.cause === reason);
  await rejects(running);
  await rejects(check(url, { apiKey: "k", signal: controller.signal }));
  assert.ok(sockets.size <= 1);
});

test("what a progress function throws ends the run", async (t) => {
  const { url } = await serve(t, () => {});
  const onProgress = () => {
    throw new RangeError("enough");
  };
  await assert.rejects(check(url, { apiKey: "k", timeoutMs: 120_000, onProgress }), RangeError);
});
