// Streams over a socket and limits of requests, tested with the vectors that all three languages read.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";

import { Client, DecodeError, InvalidRequestError } from "gatewright";

import { notOnDeno } from "./support/process.mjs";
import { answerWith, serve } from "./support/server.mjs";
import { readVectors } from "./support/vectors.mjs";

const require = createRequire(import.meta.url);
const { operations } = require(join(dirname(require.resolve("gatewright")), "generated/operations.js"));

/** How long the vectors' client lets a stream be silent, in milliseconds. */
const SILENCE = 600;
/** Why cases with a reset are skipped on Deno. */
const RESETS = notOnDeno("its server resets a connection before what was written is sent");
/** Reads a stream of each operation to its end. */
const FINAL = {
  create_chat_completion: "finalChatCompletion",
  create_response: "finalResponse",
  create_message: "finalMessage",
  stream_generate_content: "finalResponse",
};
/** Between two packets, so that they arrive separately. */
const PACKET_GAP = 3;

/** Calls an operation by its ID with these members, and a placeholder for each path parameter. */
function call(client, id, members) {
  const { name, path } = operations[id];
  const steps = name.split(".");
  const method = steps.pop();
  const resource = steps.reduce((place, step) => place[step], client);
  const words = Object.fromEntries(path.map((parameter) => [parameter, "m"]));
  return resource[method]({ ...members, ...words });
}

/** Writes a response as a vector describes it: framing, packets, end. */
async function play(socket, { status, headers, framing, packets, end }) {
  const bytes = packets.map(({ text, hex }) =>
    hex === undefined ? Buffer.from(text) : Buffer.from(hex, "hex"),
  );
  const body = Buffer.concat(bytes);
  const head = (extra) => {
    const lines = [...headers, ...extra].map(([name, value]) => `${name}: ${value}\r\n`);
    socket.write(`HTTP/1.1 ${status} Status\r\n${lines.join("")}\r\n`);
  };
  socket.setNoDelay(true);
  if (framing !== "chunked") {
    head(
      { length: [["content-length", body.length]], short: [["content-length", body.length + 1]] }[framing] ??
        [],
    );
    socket.write(body);
    if (framing !== "length") socket.end();
    return;
  }
  head([["transfer-encoding", "chunked"]]);
  const send = (packet) => {
    socket.write(
      Buffer.concat([Buffer.from(`${packet.length.toString(16)}\r\n`), packet, Buffer.from("\r\n")]),
    );
  };
  for (const packet of bytes.filter(({ length }) => length > 0)) {
    await pause(PACKET_GAP);
    send(packet);
  }
  if (end === "clean") socket.write("0\r\n\r\n");
  if (end === "reset") socket.resetAndDestroy();
  if (end === "comments") {
    // Frequent enough that a timer on bytes alone would never fire.
    for (let count = 0; count < 20 && !socket.destroyed; count += 1) {
      send(Buffer.from(": keep-alive\n\n"));
      await pause(SILENCE / 4);
    }
  }
}

async function collect(source) {
  const data = [];
  try {
    for await (const value of await source) data.push(value);
    return { data };
  } catch (error) {
    return { data, error };
  }
}

/** Checks a failure against the vector's expectation. */
function checkFailure(error, { operation, response, error: expected, partial }) {
  assert.equal(error?.kind, expected.kind, `${error}`);
  assert.equal(error.code, expected.code ?? undefined);
  // The message also names the call, the status and the request.
  const message = error.message.replace(/^\S+: (status \d+: )?/, "").replace(/ \(request \S+\)$/, "");
  if (expected.message !== null) assert.equal(message, expected.message);
  assert.equal(error.status, response.status);
  assert.equal(error.operation, operation);
  assert.equal(error.requestId, response.headers.find(([name]) => name === "x-request-id")?.[1]);
  if (partial !== undefined) assert.deepEqual(error.partial ?? null, partial);
}

test("vectors: sse/streams.json", async (t) => {
  await Promise.all(
    readVectors("sse/streams.json").cases.map((vector) =>
      t.test(vector.name, { skip: vector.response.end === "reset" && RESETS }, async (t) => {
        const { operation, response, error: expected } = vector;
        const server = await serve(t, (_, socket) => play(socket, response));
        const client = new Client({
          baseUrl: server.url,
          apiKey: "sk-test",
          maxRetries: 0,
          // Elsewhere a slow machine is not a failure.
          ...(expected?.kind === "timeout" && { idleTimeoutMs: SILENCE, eventTimeoutMs: SILENCE * 2 }),
        });
        const { stream } = operations[operation];
        const members = typeof stream === "string" ? { [stream]: true } : {};
        const open = () => call(client, operation, members);
        const atText = async () => (await open()).text();
        const whole = open().then((stream) => stream[FINAL[operation]]());
        const [events, texts, final] = await Promise.all([
          collect(open()),
          collect(atText()),
          whole.then(
            (document) => ({ document }),
            (error) => ({ error }),
          ),
        ]);
        assert.deepEqual(events.data, vector.data);
        const isRead = response.status < 300;
        if (events.error)
          assert.equal(events.error.received?.events, isRead ? vector.data.length : undefined);
        if (vector.text !== undefined) assert.equal(texts.data.join(""), vector.text);
        // A failed answer is a whole document; its text alone does not show that it failed.
        const failed = vector.final?.status === "failed";
        if (failed) assert.equal(texts.error?.kind, "stream");
        for (const { error } of failed ? [events, final] : [events, texts, final]) {
          if (expected === null) assert.equal(error, undefined);
          else checkFailure(error, vector);
        }
        if (vector.final !== undefined) assert.deepEqual(final.document, vector.final);
      }),
    ),
  );
});

test("vectors: limits, for catalog models", async (t) => {
  const server = await serve(t, (_, socket) => answerWith(socket, 200, {}));
  const client = new Client({ baseUrl: server.url, apiKey: "sk-test", maxRetries: 0, validate: true });
  const rules = (violations) => violations.map(({ pointer, rule }) => `${pointer} ${rule}`).sort();
  let [accepted, refused] = [0, 0];
  const cases = ["requests", "tools", "messages"].flatMap(
    (topic) => readVectors(`limits/${topic}.json`).cases,
  );
  for (const { name, operation, body, violations } of cases) {
    const { path, stream } = operations[operation];
    // Only catalog models are checked; the client itself sets the streaming switch.
    const catalogued = /^(model-|(image|video)_model_)/.test(body?.model) && !path.includes("model");
    if (!catalogued || (stream !== false && body[stream] !== undefined)) continue;
    const error = await call(client, operation, body).then(
      () => undefined,
      (error) => error,
    );
    if (violations.length === 0) {
      assert.equal(error, undefined, name);
      accepted += 1;
    } else {
      assert.ok(error instanceof InvalidRequestError, name);
      assert.deepEqual(rules(error.violations), rules(violations), name);
      refused += 1;
    }
  }
  assert.ok(refused > 50, `only ${refused} were refused`);
  assert.equal(server.requests.length, accepted, "what is refused is not sent");
});

test("vectors: answers/presence.json, if a call validates", async (t) => {
  for (const { name, operation, body = {}, answer, violations } of readVectors("answers/presence.json")
    .cases) {
    const server = await serve(t, (_, socket) => answerWith(socket, 200, answer));
    const options = { baseUrl: server.url, apiKey: "sk-test", maxRetries: 0 };
    const invoke = (client) =>
      operation === "retrieve_video"
        ? client.videos.generations.retrieve("m")
        : call(client, operation, body);
    // Without validation, a response that lacks members is returned unchanged.
    assert.deepEqual({ ...(await invoke(new Client(options))) }, answer, name);
    const called = invoke(new Client({ ...options, validate: true }));
    if (violations.length === 0) {
      await called;
      continue;
    }
    const error = await called.then(
      () => undefined,
      (error) => error,
    );
    assert.ok(error instanceof DecodeError, name);
    assert.deepEqual(error.violations, violations, name);
    assert.equal(error.operation, operation, name);
    assert.deepEqual(error.body, answer, name);
  }
});

test("vectors: answers/repaired.json", async (t) => {
  for (const { name, operation, body, answer, document, error } of readVectors("answers/repaired.json")
    .cases) {
    const server = await serve(t, (_, socket) => answerWith(socket, 200, answer));
    // A call that validates reads the answer, too.
    const options = { baseUrl: server.url, apiKey: "sk-test", maxRetries: 0, validate: true };
    const called = call(new Client(options), operation, body);
    if (error === undefined) {
      assert.deepEqual({ ...(await called) }, document, name);
      continue;
    }
    await assert.rejects(
      called,
      (found) => found instanceof DecodeError && found.message.includes(error),
      name,
    );
  }
});

test("vectors: limits/native.json, native requests in every spelling", async (t) => {
  const server = await serve(t, (_, socket) => answerWith(socket, 200, {}));
  const client = new Client({ baseUrl: server.url, apiKey: "sk-test", maxRetries: 0, validate: true });
  const rules = (violations) => violations.map(({ pointer, rule }) => `${pointer} ${rule}`).sort();
  const cases = readVectors("limits/native.json").cases.filter(({ operation }) =>
    operations[operation].path.includes("model"),
  );
  for (const { name, operation, body, violations } of cases) {
    if (violations.length === 0) {
      await call(client, operation, body);
      assert.deepEqual(
        JSON.parse(server.requests.at(-1).body),
        body,
        `${name}: it is sent as it was written`,
      );
    } else {
      await assert.rejects(call(client, operation, body), (error) => {
        assert.ok(error instanceof InvalidRequestError, name);
        assert.deepEqual(rules(error.violations), rules(violations), name);
        return true;
      });
    }
  }
  const accepted = cases.filter(({ violations }) => violations.length === 0);
  assert.equal(server.requests.length, accepted.length, "what is refused is not sent");
});
