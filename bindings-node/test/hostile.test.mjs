// Numbers from callers and gateways that no clock can represent, and silence: each ends as an error of its call (2.7, 3;
// the rest is ours).

import assert from "node:assert/strict";
import { test } from "node:test";

import { APITimeoutError, Client, ConfigurationError } from "gatewright";

import { runModule } from "./support/process.mjs";
import { answerWith, beginEvents, chunk, sendEvents, serve } from "./support/server.mjs";

const PROMPT = { model: "model-sol", messages: [{ role: "user", content: "Hi" }] };
const TASK = { id: "t1", status: "processing", created: 1, model: "m" };

function clientOf(server, options = {}) {
  return new Client({ baseUrl: server.url, apiKey: "sk-test", maxRetries: 0, ...options });
}

for (const retryAfter of ["10000000000000000000", "18446744073709551615", "1e300", "NaN", "-1"]) {
  test(`a wait survives a retry-after of ${retryAfter} s`, async (t) => {
    let looks = 0;
    const server = await serve(t, (_, socket) => {
      if (looks++ === 0) answerWith(socket, 200, TASK);
      else answerWith(socket, 429, {}, { "retry-after": retryAfter });
    });
    const waited = clientOf(server).videos.generations.wait("t1", { intervalMs: 10, timeoutMs: 300 });
    await assert.rejects(waited, APITimeoutError);
  });
}

const TIMES = [
  "timeoutMs",
  "connectTimeoutMs",
  "firstByteTimeoutMs",
  "idleTimeoutMs",
  "eventTimeoutMs",
  "poolTimeoutMs",
  "idleConnectionTimeoutMs",
];

test("an invalid time is rejected by name", async () => {
  for (const name of TIMES) {
    for (const wrong of [Number.NaN, Number.NEGATIVE_INFINITY, -1, 0, -1e300]) {
      const refused = {
        name: "ConfigurationError",
        message: new RegExp(`^${name} must be a number of milliseconds`),
      };
      assert.throws(() => clientOf({ url: "http://127.0.0.1:1" }, { [name]: wrong }), refused);
    }
  }
  const { generations } = clientOf({ url: "http://127.0.0.1:1" }).videos;
  for (const name of ["intervalMs", "timeoutMs"]) {
    const waited = generations.wait("t1", { [name]: Number.NaN });
    await assert.rejects(
      waited,
      (error) => error instanceof ConfigurationError && error.message.startsWith(name),
    );
  }
});

test("a huge time means no limit, and ends no process", async (t) => {
  const server = await serve(t, (_, socket) => answerWith(socket, 200, { ...TASK, status: "completed" }));
  const ended = await runModule(
    `import { Client } from "gatewright";
     for (const long of [1e22, 1e308, Infinity]) {
       const times = Object.fromEntries(${JSON.stringify(TIMES)}.map((name) => [name, long]));
       const client = new Client(times);
       const task = await client.videos.generations.wait("t1", { intervalMs: long, timeoutMs: long });
       await client.models.list({ timeoutMs: long, idleTimeoutMs: long });
       console.log(task.status);
     }`,
    { GATEWRIGHT_BASE_URL: server.url },
  );
  assert.deepEqual([ended.code, ended.output], [0, "completed\n".repeat(3)]);
});

test("the timeout bounds the silence of a stream unless idleTimeoutMs is given", async (t) => {
  const server = await serve(t, (_, socket) => {
    beginEvents(socket);
    sendEvents(socket, chunk("a"));
  });
  const silence = async (client, options) => {
    const stream = await client.chat.completions.create({ ...PROMPT, stream: true }, options);
    const events = stream[Symbol.asyncIterator]();
    assert.equal((await events.next()).value.choices[0].delta.content, "a");
    const started = performance.now();
    const error = await events.next().then(assert.fail, (error) => error);
    assert.ok(error instanceof APITimeoutError, error);
    assert.ok(error.partial);
    return { message: error.message, ms: performance.now() - started };
  };
  const client = clientOf(server);
  assert.match((await silence(client, { timeoutMs: 400 })).message, /\(timeout\)/);
  // The more specific option, for silence, wins, whether it is shorter or longer.
  const patient = await silence(client, { timeoutMs: 200, idleTimeoutMs: 1200 });
  assert.match(patient.message, /\(idle_timeout\)/);
  assert.ok(patient.ms > 1000, `${patient.ms}`);
  assert.match((await silence(clientOf(server, { timeoutMs: 400 }))).message, /\(timeout\)/);
  const silent = await silence(clientOf(server, { timeoutMs: 200, idleTimeoutMs: 1200 }));
  assert.ok(silent.ms > 1000, `${silent.ms}`);
});
