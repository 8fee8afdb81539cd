// Streams over a socket and limits of requests, by the vectors that all three languages read.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";

import { Client, InvalidRequestError } from "gatewright";

import { answerWith, serve } from "./support/server.mjs";
import { readVectors } from "./support/vectors.mjs";

const require = createRequire(import.meta.url);
const { operations } = require(join(dirname(require.resolve("gatewright")), "generated/operations.js"));

/** How long the client of the vectors lets a stream be silent, in milliseconds. */
const SILENCE = 300;
/** Between two packets, so that they arrive as two. */
const PACKET_GAP = 3;

/** Calls an operation by its id with these members, and a word for each path parameter. */
function call(client, id, members) {
  const { name, path } = operations[id];
  const steps = name.split(".");
  const method = steps.pop();
  const resource = steps.reduce((place, step) => place[step], client);
  const words = Object.fromEntries(path.map((parameter) => [parameter, "m"]));
  return resource[method]({ ...members, ...words });
}

/** Writes an answer as a vector tells it: framing, packets, end. */
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
    // Often enough that the timer on bytes alone would never fire.
    for (let count = 0; count < 20 && !socket.destroyed; count += 1) {
      send(Buffer.from(": keep-alive\n\n"));
      await pause(SILENCE / 4);
    }
  }
}

async function collect(stream) {
  const data = [];
  try {
    for await (const event of await stream) data.push(event);
    return { data };
  } catch (error) {
    return { data, error };
  }
}

test("vectors: sse/streams.json", async (t) => {
  await Promise.all(
    readVectors("sse/streams.json").cases.map((vector) =>
      t.test(vector.name, async (t) => {
        const { operation, response, error: expected } = vector;
        const server = await serve(t, (_, socket) => play(socket, response));
        const client = new Client({
          baseUrl: server.url,
          apiKey: "sk-test",
          maxRetries: 0,
          idleTimeoutMs: SILENCE,
          eventTimeoutMs: SILENCE * 2,
        });
        const { stream } = operations[operation];
        const members = typeof stream === "string" ? { [stream]: true } : {};
        const { data, error } = await collect(call(client, operation, members));
        assert.deepEqual(data, vector.data);
        if (expected === null) assert.equal(error, undefined);
        else {
          assert.equal(error?.kind, expected.kind, `${error}`);
          assert.equal(error.code, expected.code ?? undefined);
          assert.ok(expected.message === null || error.message.includes(expected.message), error.message);
          assert.equal(error.status, response.status);
          assert.equal(error.operation, operation);
          assert.equal(error.requestId, response.headers.find(([name]) => name === "x-request-id")?.[1]);
        }
      }),
    ),
  );
});

test("vectors: limits/requests.json, for models of the catalog", async (t) => {
  const server = await serve(t, (_, socket) => answerWith(socket, 200, {}));
  const client = new Client({ baseUrl: server.url, apiKey: "sk-test", maxRetries: 0, validate: true });
  const rules = (violations) => violations.map(({ pointer, rule }) => `${pointer} ${rule}`).sort();
  let [accepted, refused] = [0, 0];
  for (const { name, operation, body, violations } of readVectors("limits/requests.json").cases) {
    const { path, stream } = operations[operation];
    // Checked are the models of the catalog; the switch to a stream is the client's own to set.
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
