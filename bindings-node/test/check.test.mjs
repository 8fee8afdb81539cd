// The check kit from Node: the same run as the program's, with events.

import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { CancelledError, ConfigurationError, check, FileError, report } from "gatewright";

import { startGateway } from "./support/gateway.mjs";
import { serve } from "./support/server.mjs";

test("a compatible gateway passes and every step is reported", async (t) => {
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

test("other protocols are a document of their own", async (t) => {
  const { baseUrl, apiKey } = await startGateway(t);
  const events = [];
  const result = await check(baseUrl, {
    apiKey,
    only: ["models_endpoint"],
    protocols: ["native", "chat"],
    onProgress: (event) => events.push(event),
  });
  assert.equal(result.passed, true);
  const { checks } = result.protocols;
  const kinds = ["text", "stream", "tool", "tool_stream", "error"];
  const ids = ["chat", "native"].flatMap((protocol) => kinds.map((kind) => `${protocol}_${kind}`));
  assert.deepEqual(
    checks.map(({ id }) => id),
    ids,
  );
  const reported = events.filter(({ event }) => event === "protocol_checked").map(({ check }) => check);
  assert.deepEqual(reported, checks);
  assert.ok(!result.protocolsJson.includes(apiKey));
  assert.equal(report.validate(result.protocols).valid, true);
  assert.equal(report.canonical(result.protocolsJson), result.protocolsJson);
  assert.match(report.html(result.report, { protocols: result.protocols }), /Other protocols/);

  const folder = await mkdtemp(join(tmpdir(), "gatewright-"));
  t.after(() => rm(folder, { recursive: true }));
  await result.writeProtocols(join(folder, "report.protocols.json"));
  assert.equal(await readFile(join(folder, "report.protocols.json"), "utf8"), result.protocolsJson);
  await assert.rejects(result.writeProtocols(join(folder, "missing", "report.protocols.json")), FileError);
});

test("a failed check of another protocol fails the run", async (t) => {
  const { baseUrl, apiKey } = await startGateway(t);
  const options = { apiKey, models: ["gpt-5"], only: ["models_endpoint"] };
  const result = await check(baseUrl, { ...options, protocols: ["all"] });
  assert.equal(result.report.overall_status, "pass");
  assert.ok(result.protocols.summary.failed > 0);
  assert.equal(result.passed, false);
  assert.match(report.githubAnnotations(result.protocols), /^::error title=chat_text gpt-5/);
  const without = await check(baseUrl, options);
  assert.equal(without.passed, true);
  assert.equal(without.protocols, undefined);
  await assert.rejects(without.writeProtocols("/nowhere/report.json"), /the run had no additional checks/);
});

test("a rejected key fails the checks and is never shown", async (t) => {
  const { baseUrl } = await startGateway(t);
  const result = await check(baseUrl, { apiKey: "wrong-canary-key", only: ["models_endpoint"] });
  assert.equal(result.passed, false);
  assert.equal(result.report.checks[0].error.category, "auth");
  assert.ok(!JSON.stringify([result.json, result.evidence]).includes("canary"));
});

test("out-of-bounds options are reported together", async () => {
  const refused = check("http://127.0.0.1:9", { apiKey: "k", timeoutMs: 1, models: ["model-tera"] });
  await assert.rejects(refused, (error) => {
    assert.ok(error instanceof ConfigurationError);
    assert.match(error.message, /timeout_ms must be from 1000 to 120000, not 1.*model-tera/);
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

test("a single options object works too, and an unknown option is rejected by name", async (t) => {
  const { baseUrl, apiKey } = await startGateway(t);
  const result = await check({ endpoint: baseUrl, apiKey, only: ["models_endpoint"], models: null });
  assert.equal(result.passed, true);
  assert.equal(result.interrupted, false);
  const refused = [
    [{ endpoint: baseUrl, timeout: 5 }, "check: no option is called timeout; it is called timeoutMs here"],
    [
      { endpoint: baseUrl, base_path: "/" },
      "check: no option is called base_path; it is called basePath here",
    ],
    [{ endpoint: baseUrl, colour: 1 }, "check: no option is called colour"],
    [
      { endpoint: baseUrl, profile: { kit_name: "k" } },
      "check: profile: no option is called kit_name; it is called kitName here",
    ],
  ];
  for (const [options, message] of refused) {
    await assert.rejects(check(options), { name: "TypeError", message });
    const { endpoint, ...rest } = options;
    await assert.rejects(check(endpoint, rest), { name: "TypeError", message });
  }
  await assert.rejects(check(baseUrl, { endpoint: baseUrl }), /no option is called endpoint/);
  await assert.rejects(check({ apiKey }), /endpoint is missing/);
});

test("a value of the wrong type is rejected with the option's name and bound", async () => {
  const limit = "timeout_ms must be a whole number from 1000 to 120000, not";
  const refused = [
    [{ timeoutMs: -1 }, `${limit} -1`],
    [{ timeoutMs: 1.5 }, `${limit} 1.5`],
    [{ timeoutMs: Number.NaN }, `${limit} "NaN"`],
    [{ timeoutMs: 2n ** 70n }, `${limit} "1180591620717411303424"`],
    [{ protocols: ["chatt"] }, "protocols must be a list out of chat, messages, native, all, not"],
    [{ protocols: "all" }, 'protocols must be a list out of chat, messages, native, all, not "all"'],
    [{ agentMode: "nope" }, "agent_mode must be one of skipped, one-model, all-models"],
    [{ only: ["nope"] }, "only must be a list out of models_endpoint, "],
    [{ models: "model-sol" }, "models must be a list of strings"],
    [{ models: [] }, "models is empty"],
  ];
  for (const [options, message] of refused) {
    await assert.rejects(check("http://127.0.0.1:9", { apiKey: "k", ...options }), (error) => {
      assert.ok(error instanceof ConfigurationError);
      assert.ok(error.message.startsWith(message), error.message);
      return true;
    });
  }
});

test("a signal ends a run immediately, and the error has the complete report", async (t) => {
  // Never responds.
  const { url, sockets } = await serve(t, () => {});
  const controller = new AbortController();
  const reason = new Error("enough");
  const onProgress = ({ event }) => event === "started" && controller.abort(reason);
  const running = check(url, { apiKey: "k", timeoutMs: 120_000, onProgress, signal: controller.signal });
  const begin = performance.now();
  await assert.rejects(running, (error) => {
    assert.ok(error instanceof CancelledError);
    assert.equal(error.cause, reason);
    assert.equal(error.result.interrupted, true);
    assert.equal(report.validate(error.result.json).valid, true);
    const [first, ...others] = error.result.report.checks;
    assert.equal(first.id, "models_endpoint");
    const aborted = [first, ...others].filter((one) => one.reason?.startsWith("aborted:"));
    assert.ok(aborted.length > 0);
    return true;
  });
  assert.ok(performance.now() - begin < 5_000);
  await assert.rejects(check(url, { apiKey: "k", signal: controller.signal }), (error) => {
    assert.ok(error instanceof CancelledError);
    assert.equal(error.cause, reason);
    // Nothing was started.
    assert.equal(error.result, undefined);
    return true;
  });
  assert.ok(sockets.size <= 1);
});

test("an exception of a progress function ends the run", async (t) => {
  const { url } = await serve(t, () => {});
  const onProgress = () => {
    throw new RangeError("enough");
  };
  await assert.rejects(check(url, { apiKey: "k", timeoutMs: 120_000, onProgress }), RangeError);
});
