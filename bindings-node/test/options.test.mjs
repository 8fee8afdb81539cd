// Options of clients and of calls: what each does, on its own server.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { connect } from "node:net";
import { test } from "node:test";
import { inspect } from "node:util";

import {
  APITimeoutError,
  Client,
  ConfigurationError,
  InvalidRequestError,
  PoolTimeoutError,
  responseOf,
} from "gatewright";

import { runModule } from "./support/process.mjs";
import { answerWith, beginEvents, chunk, sendEvents, serve } from "./support/server.mjs";
import { readVectors } from "./support/vectors.mjs";

const PROMPT = { model: "model-sol", messages: [{ role: "user", content: "Hi" }] };
const MODELS = { object: "list", data: [{ id: "model-sol" }, { id: "model-luna" }] };

function clientOf(server, options = {}) {
  return new Client({ baseUrl: server.url, apiKey: "sk-test", maxRetries: 0, ...options });
}

const echoing = (t) => serve(t, (_, socket) => answerWith(socket, 200, MODELS));

test("headers and query may be what iterates over pairs", async (t) => {
  const server = await echoing(t);
  const client = clientOf(server, { defaultHeaders: new Headers({ "x-team": "blue" }) });
  await client.models.list({
    extraHeaders: new Map([["x-trace", "t1"]]),
    extraQuery: new URLSearchParams([
      ["tag", "a"],
      ["tag", "b"],
    ]),
  });
  const [{ headers, target }] = server.requests;
  assert.deepEqual([headers["x-team"], headers["x-trace"]], ["blue", "t1"]);
  assert.equal(new URL(target, "http://x").search, "?tag=a&tag=b");
});

test("default headers and query are sent with every call, unless the call overrides them", async (t) => {
  const server = await echoing(t);
  const client = clientOf(server, {
    defaultHeaders: { "x-team": "blue", "x-kept": "1" },
    defaultQuery: { tenant: "a", region: "eu" },
  });
  await client.models.list();
  await client.models.list({ extraHeaders: { "X-Team": "red" }, extraQuery: { tenant: "b" } });
  const seen = server.requests.map(({ headers, target }) => [headers["x-team"], headers["x-kept"], target]);
  assert.deepEqual(seen, [
    ["blue", "1", "/v1/models?tenant=a&region=eu"],
    ["red", "1", "/v1/models?region=eu&tenant=b"],
  ]);
});

test("withOptions returns a client with other defaults over the same connections", async (t) => {
  const server = await echoing(t);
  const client = clientOf(server, { defaultHeaders: { "x-team": "blue" } });
  const other = client.withOptions({
    extraHeaders: { "x-trace": "t1" },
    extraBody: { safety: "off", user: "u1" },
    timeoutMs: 5000,
  });
  const third = other.withOptions({ extraBody: { user: "u2" } });
  assert.ok(other instanceof Client);
  assert.equal(other.baseUrl, client.baseUrl);
  await client.models.list();
  await other.chat.completions.create(PROMPT);
  await third.chat.completions.create(PROMPT, { extraBody: { last: true } });
  const [first, second, last] = server.requests;
  assert.equal(first.headers["x-trace"], undefined);
  assert.deepEqual([second.headers["x-trace"], second.headers["x-team"]], ["t1", "blue"]);
  assert.deepEqual(JSON.parse(second.body), { ...PROMPT, safety: "off", user: "u1" });
  assert.deepEqual(JSON.parse(last.body), { ...PROMPT, safety: "off", user: "u2", last: true });
  assert.equal(new Set(server.requests.map(({ socket }) => socket)).size, 1, "one connection did for all");
  assert.throws(
    () => client.withOptions({ timeoutMs: -1 }),
    (error) => error instanceof ConfigurationError && /options\.test/.test(error.stack),
  );
});

test("extra body members do not change whether a response streams", async (t) => {
  const server = await echoing(t);
  const client = clientOf(server);
  const refused = {
    name: "InvalidRequestError",
    message: /"stream".*; to stream, give stream to chat\.completions\.create itself/,
  };
  const extra = { extraBody: { stream: true } };
  await assert.rejects(client.chat.completions.create(PROMPT, extra), refused);
  await assert.rejects(client.withOptions(extra).chat.completions.create(PROMPT), refused);
  const streaming = { ...PROMPT, stream: true };
  await assert.rejects(client.chat.completions.create(streaming, { extraBody: { stream: false } }), {
    name: "InvalidRequestError",
    message: /"stream".*; for a whole response, call chat\.completions\.create without stream/,
  });
  assert.equal(server.requests.length, 0);
});

test("an invalid time is rejected wherever it is given", async (t) => {
  const client = clientOf(await echoing(t));
  for (const given of [0, -1, Number.NaN, -0, 1e-9]) {
    const refused = {
      name: "ConfigurationError",
      message: /^timeoutMs must be a number of milliseconds above 0, not /,
    };
    assert.throws(() => clientOf({ url: client.baseUrl }, { timeoutMs: given }), refused);
    assert.throws(() => client.withOptions({ timeoutMs: given }), refused);
    await assert.rejects(client.models.list({ timeoutMs: given }), refused);
    assert.throws(() => clientOf({ url: client.baseUrl }, { poolTimeoutMs: given }), /poolTimeoutMs/);
  }
});

test("the gateway can control retries", async (t) => {
  const quota = { error: { code: "insufficient_quota" } };
  for (const [status, headers, body, attempts] of [
    [503, { "x-should-retry": "false" }, {}, 1],
    [400, { "x-should-retry": "true" }, {}, 3],
    [429, {}, quota, 1],
    [429, {}, {}, 3],
  ]) {
    const server = await serve(t, (_, socket) =>
      answerWith(socket, status, body, { "retry-after-ms": "1", ...headers }),
    );
    await assert.rejects(clientOf(server, { maxRetries: 2 }).models.list(), { status, attempts });
    assert.equal(server.requests.length, attempts);
  }
});

test("a gateway that accepts no connection hits the connect timeout", async (t) => {
  // A process that listens and never accepts. Its queue has room for two; the next connection gets no response. It uses
  // Node in every test run: other runtimes choose the length of the queue themselves.
  const source = `
    const server = require("node:net").createServer();
    server.listen({ port: 0, host: "127.0.0.1", backlog: 1 }, () => {
      require("node:fs").writeSync(1, String(server.address().port));
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    });`;
  const listening = spawn("node", ["--eval", source], { stdio: ["ignore", "pipe", "inherit"] });
  t.after(() => listening.kill("SIGKILL"));
  const [port] = await once(listening.stdout, "data");
  for (let queued = 0; queued < 2; queued += 1) {
    const socket = connect(Number(port), "127.0.0.1");
    t.after(() => socket.destroy());
    await once(socket, "connect");
  }
  const client = clientOf({ url: `http://127.0.0.1:${port}` }, { connectTimeoutMs: 200 });
  const started = performance.now();
  await assert.rejects(
    client.models.list(),
    (error) => error instanceof APITimeoutError && /timed out connecting/.test(error.message),
  );
  assert.ok(performance.now() - started < 2000);
});

test("a proxy from the environment is used, and the log enabled there shows no key", async (t) => {
  const server = await serve(t, (_, socket) => answerWith(socket, 200, { ...MODELS, quoted: "sk-canary" }));
  const source = `
    import { Client } from "gatewright";
    await new Client({ baseUrl: "http://gateway.invalid", apiKey: "sk-canary" }).models.list();`;
  const none = { NO_PROXY: "", no_proxy: "", http_proxy: "", ALL_PROXY: "", all_proxy: "" };
  const environment = { ...none, HTTP_PROXY: server.url, GATEWRIGHT_LOG: "debug" };
  const { code, output } = await runModule(source, environment);
  assert.equal(code, 0, output);
  assert.equal(server.requests[0].target, "http://gateway.invalid/v1/models");
  assert.match(
    output,
    /^gatewright: list_models attempt 1: GET http:\/\/gateway\.invalid\/v1\/models: 200 /m,
  );
  assert.match(output, /"quoted":"\[redacted\]"/);
  assert.doesNotMatch(output, /canary/);
});

test("an unknown option is rejected, with a suggestion", async (t) => {
  assert.throws(
    () => new Client({ apikey: "sk" }),
    /Client: no option is called apikey; did you mean apiKey\?/,
  );
  assert.throws(() => new Client({ headers: {} }), /no option is called headers$/);
  const client = clientOf(await echoing(t));
  await assert.rejects(
    client.models.list({ headers: {} }),
    /models\.list: no option is called headers; it is called extraHeaders here/,
  );
  await assert.rejects(client.models.list({ maxRetires: 5 }), /; did you mean maxRetries\?/);
  await assert.rejects(client.models.list({ xyz: 5 }), /no option is called xyz$/);
  await assert.rejects(
    client.native.models.list({ pagesize: 5 }),
    /is called pagesize; did you mean pageSize\?/,
  );
  assert.throws(() => client.withOptions({ signal: AbortSignal.abort() }), /no option is called signal/);
});

test("address and timeout may have their names in other SDKs, but not both names", async (t) => {
  const server = await serve(t, () => {});
  const client = new Client({ baseURL: `${server.url}/v1`, apiKey: "sk-test", timeout: 50, maxRetries: 0 });
  assert.equal(client.baseUrl, server.url);
  await assert.rejects(client.models.list(), APITimeoutError);
  const patient = client.withOptions({ timeout: 60_000 });
  await assert.rejects(patient.models.list({ timeout: 50 }), APITimeoutError);
  await assert.rejects(
    patient.models.list({ timeout: 50, timeoutMs: 50 }),
    /timeout and timeoutMs are the same option/,
  );
});

test("vectors: surface/missing.json", async (t) => {
  const client = clientOf(await echoing(t));
  for (const { node, message } of readVectors("surface/missing.json").cases) {
    if (node === undefined) continue;
    const [, ...names] = node.split(".");
    const sentence = typeof message === "string" ? message : message.node;
    assert.throws(() => names.reduce((owner, name) => owner[name], client), {
      name: "TypeError",
      message: `${node}: ${sentence}`,
    });
  }
});

test("a name that this client lacks is seen only where it is read", async (t) => {
  const client = clientOf(await echoing(t));
  assert.throws(() => client.beta.chat.completions.parse({}), /^TypeError: client\.beta: /);
  assert.equal(client.nothing, undefined);
  assert.ok(!("evals" in { ...client }));
  assert.doesNotMatch(inspect(client, { depth: 5 }), /evals/);
});

test("an idempotency key is generated for each call, or given, and reused by its attempts", async (t) => {
  let count = 0;
  const server = await serve(t, (_, socket) => {
    count += 1;
    answerWith(socket, count % 2 === 1 ? 503 : 200, MODELS, { "retry-after-ms": "1" });
  });
  const client = clientOf(server, { maxRetries: 1 });
  await client.chat.completions.create(PROMPT);
  await client.chat.completions.create(PROMPT, { idempotencyKey: "order-7" });
  const keys = server.requests.map(({ headers }) => headers["idempotency-key"]);
  assert.ok(keys[0].length > 8);
  assert.deepEqual(keys, [keys[0], keys[0], "order-7", "order-7"]);
});

test("a request is validated before it is sent if the client or the call enables it (2.1)", async (t) => {
  const server = await echoing(t);
  const wrong = { ...PROMPT, temperature: 3, frequency_penalty: -9 };
  const rejected = (call) =>
    assert.rejects(call, (error) => {
      assert.ok(error instanceof InvalidRequestError);
      const pointers = error.violations.map(({ pointer }) => pointer).sort();
      assert.deepEqual(pointers, ["/frequency_penalty", "/temperature"], "all at once");
      assert.ok(error.violations.every(({ section }) => section === "2.1"));
      assert.equal(error.attempts, 0);
      return true;
    });
  await rejected(clientOf(server).chat.completions.create(wrong, { validate: true }));
  await rejected(clientOf(server, { validate: true }).chat.completions.create(wrong));
  await rejected(clientOf(server).withOptions({ validate: true }).chat.completions.create(wrong));
  assert.equal(server.requests.length, 0);
  await clientOf(server, { validate: true }).chat.completions.create(wrong, { validate: false });
  assert.equal(server.requests.length, 1);
});

test("each timeout bounds its own part, for a client and for a call", async (t) => {
  const silent = await serve(t, () => {});
  const halting = await serve(t, (request, socket) => {
    if (request.body === "") {
      socket.write("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{");
      return;
    }
    beginEvents(socket);
    sendEvents(socket, chunk("a"));
    const timer = setInterval(() => socket.write(": keep-alive\n\n"), 20);
    socket.on("close", () => clearInterval(timer));
  });
  const took = async (call) => {
    const started = performance.now();
    await assert.rejects(call, APITimeoutError);
    return performance.now() - started;
  };
  const read = async (stream) => {
    for await (const _ of await stream);
  };
  const bounds = [
    took(clientOf(silent, { firstByteTimeoutMs: 100 }).models.list()),
    took(clientOf(silent).models.list({ firstByteTimeoutMs: 100 })),
    took(clientOf(halting, { idleTimeoutMs: 100 }).models.list()),
    took(clientOf(halting).models.list({ idleTimeoutMs: 100 })),
    took(
      read(clientOf(halting, { eventTimeoutMs: 100 }).chat.completions.create({ ...PROMPT, stream: true })),
    ),
    took(
      read(clientOf(halting).chat.completions.create({ ...PROMPT, stream: true }, { eventTimeoutMs: 100 })),
    ),
    took(clientOf(silent).withOptions({ timeoutMs: 100 }).models.list()),
  ];
  for (const duration of await Promise.all(bounds)) assert.ok(duration < 1500, `${duration} ms`);
});

test("AbortSignal.timeout ends a call and a stream, and is the cause", async (t) => {
  const server = await serve(t, (request, socket) => {
    if (request.body !== "") beginEvents(socket);
  });
  const client = clientOf(server);
  const isTimeout = (error) => error.kind === "cancelled" && error.cause.name === "TimeoutError";
  await assert.rejects(client.models.list({ signal: AbortSignal.timeout(50) }), isTimeout);
  const stream = await client.chat.completions.create(
    { ...PROMPT, stream: true },
    { signal: AbortSignal.timeout(80) },
  );
  await assert.rejects(stream.next(), isTimeout);
});

test("a call that finds all connections in use waits its turn, then fails with PoolTimeoutError", async (t) => {
  const server = await serve(t, (request, socket) => {
    if (request.body === "") {
      answerWith(socket, 200, MODELS);
      return;
    }
    beginEvents(socket);
    sendEvents(socket, chunk("a"));
  });
  const client = clientOf(server, { maxConnections: 1, poolTimeoutMs: 100 });
  const stream = await client.chat.completions.create({ ...PROMPT, stream: true });
  await assert.rejects(client.models.list(), PoolTimeoutError);
  stream.close();
  assert.equal((await client.models.list()).data.length, 2);
});

test("the number and lifetime of idle connections are as configured", async (t) => {
  const server = await echoing(t);
  const client = clientOf(server, { maxIdleConnections: 0 });
  await client.models.list();
  await client.models.list();
  assert.equal(new Set(server.requests.map(({ socket }) => socket)).size, 2);
});

test("a configured proxy is used, and a disabled one is not", async (t) => {
  const seen = [];
  const proxy = createServer((request, response) => {
    seen.push(request.url);
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(MODELS));
  });
  await new Promise((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    proxy.closeAllConnections();
    proxy.close();
  });
  const url = `http://127.0.0.1:${proxy.address().port}`;
  const options = { baseUrl: "http://gateway.test", apiKey: "sk-test", maxRetries: 0 };
  await new Client({ ...options, proxy: url }).models.list();
  assert.deepEqual(seen, ["http://gateway.test/v1/models"]);
  const server = await echoing(t);
  await clientOf(server, { proxy: false }).models.list();
  assert.equal(server.requests.length, 1);
  assert.throws(() => new Client({ ...options, proxy: "no url" }), ConfigurationError);
});

test("the size of a response is limited", async (t) => {
  const client = clientOf(await echoing(t), { maxBodyBytes: 10 });
  await assert.rejects(client.models.list(), /10 bytes/);
});

test("model lists can be iterated directly, or from the promise", async (t) => {
  const server = await echoing(t);
  const client = clientOf(server);
  const models = await client.models.list();
  assert.deepEqual([...models], MODELS.data);
  assert.deepEqual(models, MODELS, "the result is what arrived");
  const ids = [];
  for await (const model of client.models.list()) ids.push(model.id);
  for await (const model of await client.models.list()) ids.push(model.id);
  assert.deepEqual(ids, ["model-sol", "model-luna", "model-sol", "model-luna"]);
  await assert.rejects(async () => {
    for await (const _ of client.videos.generations.retrieve("t"));
  }, TypeError);
});

test("withResponse and errors also have the request ID under the name used by other SDKs", async (t) => {
  const server = await serve(t, (request, socket) =>
    answerWith(socket, request.target.includes("x") ? 404 : 200, MODELS),
  );
  const client = clientOf(server);
  const { request_id } = await client.models.list().withResponse();
  assert.equal(request_id, "req_test");
  const error = await client.videos.generations.retrieve("x").then(assert.fail, (error) => error);
  assert.equal(error.requestID, "req_test");
  assert.equal(error.headers.get("content-type"), "application/json");
  assert.ok(error.elapsedMs > 0);
  assert.equal(responseOf(await client.models.list()).status, 200);
});

test("output_text joins the text of a response's messages, in addition to what arrived (2.4)", async (t) => {
  const response = {
    id: "r1",
    object: "response",
    output: [
      { type: "reasoning", summary: [] },
      {
        type: "message",
        content: [
          { type: "output_text", text: "Hel" },
          { type: "refusal", refusal: "no" },
        ],
      },
      { type: "message", content: [{ type: "output_text", text: "lo" }] },
    ],
  };
  const server = await serve(t, (_, socket) => answerWith(socket, 200, response));
  const got = await clientOf(server).responses.create({ model: "model-sol", input: "Hi" });
  assert.equal(got.output_text, "Hello");
  assert.deepEqual(got, response);
  assert.equal(JSON.stringify(got), JSON.stringify(response));
});
