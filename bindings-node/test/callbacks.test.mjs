// The caller's own functions: the key provider and middleware.

import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";

import {
  APIConnectionError,
  AuthenticationError,
  CancelledError,
  Client,
  InternalServerError,
  Stream,
} from "gatewright";

import { answerWith, beginEvents, chunk, closedByClient, sendEvents, serve } from "./support/server.mjs";

const PROMPT = { model: "model-sol", messages: [{ role: "user", content: "Hi 👋" }] };
const MODELS = { object: "list", data: [] };

function clientOf(server, options = {}) {
  return new Client({ baseUrl: server.url, apiKey: "sk-test", maxRetries: 0, ...options });
}

const echoing = (t) => serve(t, (_, socket) => answerWith(socket, 200, MODELS));
const rejection = (promise) => promise.then(assert.fail, (error) => error);

test("a function provides the key, directly or by a promise, for every call", async (t) => {
  const server = await echoing(t);
  let count = 0;
  for (const apiKey of [
    () => `sk-${++count}`,
    async () => {
      await pause(5);
      return `sk-${++count}`;
    },
  ]) {
    const client = clientOf(server, { apiKey });
    await client.models.list();
    await client.models.list();
  }
  const sent = server.requests.map(({ headers }) => headers.authorization);
  assert.deepEqual(sent, ["Bearer sk-1", "Bearer sk-2", "Bearer sk-3", "Bearer sk-4"]);
});

test("a rejected key is refreshed once", async (t) => {
  let valid = "Bearer fresh";
  const server = await serve(t, (request, socket) => {
    answerWith(socket, request.headers.authorization === valid ? 200 : 401, MODELS);
  });
  const refreshes = [];
  const apiKey = ({ refresh }) => {
    refreshes.push(refresh);
    return refresh ? "fresh" : "stale";
  };
  const client = clientOf(server, { apiKey });
  await client.models.list();
  assert.deepEqual(refreshes, [false, true]);
  valid = "Bearer another";
  await assert.rejects(client.models.list(), AuthenticationError);
  assert.deepEqual(refreshes, [false, true, false, true]);
  await assert.rejects(clientOf(server, { apiKey: "sk-fixed" }).models.list(), AuthenticationError);
  assert.equal(server.requests.length, 5, "a fixed key is not tried twice");
});

test("an exception of the key's function reaches the caller unchanged", async (t) => {
  const server = await echoing(t);
  const thrown = new Error("the vault is sealed");
  const failing = [
    () => {
      throw thrown;
    },
    () => Promise.reject(thrown),
  ];
  for (const apiKey of failing)
    assert.equal(await rejection(clientOf(server, { apiKey }).models.list()), thrown);
  assert.match(
    (await rejection(clientOf(server, { apiKey: () => 7 }).models.list())).message,
    /returned number/,
  );
  assert.equal(server.requests.length, 0);
});

test("middleware sees every attempt and its outcome", async (t) => {
  let count = 0;
  const server = await serve(t, (_, socket) => {
    count += 1;
    if (count === 1) socket.destroy();
    else if (count === 2) answerWith(socket, 503, { error: { message: "busy" } }, { "retry-after-ms": "1" });
    else answerWith(socket, 200, MODELS);
  });
  const seen = [];
  const middleware = {
    before(attempt) {
      seen.push(attempt);
    },
    async after(attempt, outcome) {
      await pause(1);
      seen.push(outcome);
      assert.equal(attempt, seen.at(-2), "the same object in both");
    },
  };
  const client = clientOf(server, { middleware: [middleware], maxRetries: 2 });
  await client.chat.completions.create(PROMPT, { extraQuery: { q: "1" } });
  const [first, lost, second, busy, third, done] = seen;
  assert.equal(seen.length, 6);
  assert.deepEqual(
    [first, second, third].map(({ number, previous, maxRetries }) => [number, previous, maxRetries]),
    [
      [1, null, 2],
      [2, "connection", 2],
      [3, "internal_server", 2],
    ],
  );
  assert.equal(first.operation, "create_chat_completion");
  assert.equal(first.method, "POST");
  assert.equal(first.url, `${server.url}/v1/chat/completions?q=1`);
  assert.deepEqual(JSON.parse(first.body), PROMPT);
  assert.equal(first.headers.get("authorization"), "Bearer sk-test");
  assert.ok(first.remainingMs > 1000);
  assert.ok(lost.error instanceof APIConnectionError);
  assert.deepEqual([lost.status, lost.headers, lost.body], [null, null, null]);
  assert.ok(busy.error instanceof InternalServerError);
  assert.deepEqual([busy.status, busy.requestId], [503, "req_test"]);
  assert.deepEqual(JSON.parse(busy.body), { error: { message: "busy" } });
  assert.deepEqual([done.status, done.error, JSON.parse(done.body)], [200, null, MODELS]);
  assert.equal(done.headers.get("content-type"), "application/json");
  assert.ok(done.elapsedMs > 0);
});

test("middleware may change the headers of an attempt, and only of that one", async (t) => {
  let count = 0;
  const server = await serve(t, (_, socket) => {
    count += 1;
    answerWith(socket, count === 1 ? 503 : 200, MODELS, { "retry-after-ms": "1" });
  });
  const middleware = {
    before({ number, headers }) {
      if (number > 1) return;
      headers.set("x-signature", "abc");
      headers.append("x-signature", "def");
      headers.delete("user-agent");
    },
  };
  await clientOf(server, { middleware: [middleware], maxRetries: 1 }).models.list();
  const [first, second] = server.requests.map(({ headers }) => headers);
  assert.deepEqual([first["x-signature"], first["user-agent"]], ["abc, def", undefined]);
  assert.equal(first.authorization, "Bearer sk-test");
  assert.equal(second["x-signature"], undefined);
  assert.match(second["user-agent"], /gatewright/);
});

test("of several middlewares the first is the outermost", async (t) => {
  const server = await echoing(t);
  const order = [];
  const named = (name) => ({
    before: () => void order.push(`before ${name}`),
    after: async () => void order.push(`after ${name}`),
  });
  await clientOf(server, { middleware: [named("a"), {}, named("b")] }).models.list();
  assert.deepEqual(order, ["before a", "before b", "after b", "after a"]);
});

test("an exception of middleware reaches the caller unchanged, without retries", async (t) => {
  const server = await serve(t, (request, socket) => {
    if (request.body === "") answerWith(socket, 503, MODELS, { "retry-after-ms": "1" });
    else {
      beginEvents(socket);
      sendEvents(socket, chunk("a"));
    }
  });
  class NotAllowed extends Error {}
  const thrown = new NotAllowed("not allowed");
  const throwing = () => {
    throw thrown;
  };
  const failing = async () => {
    await pause(1);
    throw thrown;
  };
  for (const before of [throwing, failing]) {
    const client = clientOf(server, { middleware: [{ before }], maxRetries: 3 });
    assert.equal(await rejection(client.models.list()), thrown);
  }
  assert.equal(server.requests.length, 0);
  for (const after of [throwing, failing]) {
    const client = clientOf(server, { middleware: [{ after }], maxRetries: 3 });
    assert.equal(await rejection(client.models.list()), thrown);
  }
  assert.equal(server.requests.length, 2);
  const client = clientOf(server, { middleware: [{ after: throwing }] });
  assert.equal(await rejection(client.chat.completions.create({ ...PROMPT, stream: true })), thrown);
  await closedByClient(server.requests[2].socket);
  // Errors of other calls are unaffected.
  const mixed = clientOf(server, {
    middleware: [{ before: ({ url }) => (url.endsWith("?fail=1") ? throwing() : pause(10)) }],
  });
  const [own, others] = await Promise.all([
    rejection(mixed.models.list({ extraQuery: { fail: "1" } })),
    rejection(mixed.models.list()),
  ]);
  assert.equal(own, thrown);
  assert.ok(others instanceof InternalServerError);
});

test("callbacks run in the asynchronous context of their call", async (t) => {
  const server = await echoing(t);
  const trace = new AsyncLocalStorage();
  const seen = [];
  const client = clientOf(server, {
    apiKey: () => {
      seen.push(`key ${trace.getStore()}`);
      return "sk-test";
    },
    middleware: [
      { before: () => void seen.push(trace.getStore()), after: () => void seen.push(trace.getStore()) },
    ],
  });
  await trace.run("one", () => client.models.list());
  await trace.run("two", () => client.models.list());
  assert.deepEqual(seen, ["key one", "one", "one", "key two", "two", "two"]);
});

test("a signal ends a call that waits for a callback, and the deadline bounds it", async (t) => {
  const server = await echoing(t);
  const never = new Promise(() => {});
  const client = clientOf(server, { middleware: [{ before: () => never }] });
  const started = performance.now();
  await assert.rejects(client.models.list({ signal: AbortSignal.timeout(50) }), CancelledError);
  await assert.rejects(client.models.list({ timeoutMs: 50 }), { kind: "timeout" });
  const keyless = clientOf(server, { apiKey: () => never });
  await assert.rejects(keyless.models.list({ timeoutMs: 50 }), { kind: "timeout" });
  assert.ok(performance.now() - started < 1500);
  assert.equal(server.requests.length, 0);
});

test("callbacks may use clients themselves, and withOptions retains them", async (t) => {
  const server = await echoing(t);
  let lookups = 0;
  const keys = clientOf(server);
  const client = clientOf(server, {
    apiKey: async () => {
      await keys.models.list();
      lookups += 1;
      return "sk-test";
    },
  });
  await Promise.all(Array.from({ length: 20 }, () => client.withOptions({ timeoutMs: 5000 }).models.list()));
  assert.equal(lookups, 20);
  assert.equal(server.requests.length, 40);
});

test("streams pass through middleware, up to their head", async (t) => {
  const server = await serve(t, (_, socket) => {
    beginEvents(socket);
    sendEvents(socket, chunk("a"), chunk(undefined, "stop"), "[DONE]");
  });
  const outcomes = [];
  const client = clientOf(server, { middleware: [{ after: (_, outcome) => void outcomes.push(outcome) }] });
  const stream = await client.chat.completions.create({ ...PROMPT, stream: true });
  assert.ok(stream instanceof Stream);
  assert.deepEqual([outcomes[0].status, outcomes[0].body, outcomes[0].requestId], [200, null, "req_stream"]);
  for await (const _ of stream);
  assert.equal(outcomes.length, 1);
});

test("a header with characters beyond bytes is no TypeError, with middleware or without", async (t) => {
  const server = await serve(t, ({ target }, socket) => {
    const [status, body] = target.includes("models") ? [200, '{"object":"list","data":[]}'] : [401, "{}"];
    const head = [
      `HTTP/1.1 ${status} Status`,
      'www-authenticate: Basic realm="f\xfcr"',
      `content-length: ${body.length}`,
    ];
    socket.write(
      Buffer.from(`${head.join("\r\n")}\r\ncontent-type: application/json\r\n\r\n${body}`, "latin1"),
    );
  });
  const seen = [];
  const middleware = [
    {
      before: ({ headers }) => headers.set("x-added", "yes"),
      after: (_, { status, headers }) => seen.push([status, headers.get("www-authenticate")]),
    },
  ];
  for (const options of [{}, { middleware }]) {
    const client = clientOf(server, { defaultHeaders: { "x-user": "山田" }, ...options });
    await client.models.list();
    const error = await rejection(client.chat.completions.create(PROMPT));
    assert.ok(error instanceof AuthenticationError, String(error));
    assert.match(error.headers.get("www-authenticate"), /^Basic realm="f.*r"$/);
  }
  assert.deepEqual(
    seen.map(([status]) => status),
    [200, 401],
  );
  for (const { headers } of server.requests) {
    assert.equal(Buffer.from(headers["x-user"], "latin1").toString(), "山田");
  }
  assert.equal(server.requests.at(-1).headers["x-added"], "yes");
});
