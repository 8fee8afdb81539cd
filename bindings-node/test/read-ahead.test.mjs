// What the client reads ahead: one batch of a stream, of which nothing is lost.

import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Worker } from "node:worker_threads";

import { Client, StreamError } from "gatewright";

import { beginEvents, chunk, closedByClient, sendEvents, serve } from "./support/server.mjs";

const STREAMED = { model: "model-sol", messages: [{ role: "user", content: "Hi" }], stream: true };
/** Long enough for the client to have read what the server has sent. */
const READ_AHEAD = 100;

const textOf = (event) => event.choices[0].delta.content;
const open = (server) =>
  new Client({ baseUrl: server.url, apiKey: "sk-test" }).chat.completions.create(STREAMED);

/** A server that sends one chunk and, shortly after, more; then it leaves the stream open or ends it. */
function inTwoParts(t, others, end) {
  return serve(t, (_, socket) => {
    beginEvents(socket);
    sendEvents(socket, chunk("a"));
    setTimeout(() => {
      sendEvents(socket, ...others);
      if (end !== undefined) socket.end(end);
    }, READ_AHEAD / 4);
  });
}

/** A stream in two parts, after its first event, once the second part has been read ahead. */
async function readAhead(t, others, end) {
  const stream = await open(await inTwoParts(t, others, end));
  assert.equal(textOf((await stream.next()).value), "a");
  // Meanwhile, the rest is read ahead.
  await pause(READ_AHEAD);
  return stream;
}

test("a reader that pauses applies backpressure to the server", async (t) => {
  const wanted = 256 * 1024 * 1024;
  let sent = 0;
  const server = await serve(t, (_, socket) => {
    beginEvents(socket);
    const event = `data: ${JSON.stringify(chunk("x".repeat(16 * 1024)))}\n\n`;
    const send = () => {
      while (sent < wanted && socket.write(event)) sent += event.length;
    };
    socket.on("drain", send);
    send();
  });
  const stream = await open(server);
  await stream.next();
  let before = -1;
  while (before !== sent) {
    before = sent;
    await pause(200);
  }
  // What the system buffers, and two batches.
  assert.ok(sent < wanted / 4, `${sent} bytes were sent to a reader that pauses`);
  stream.close();
});

test("a failure that was read ahead reaches the next event or document request", async (t) => {
  const failure = { error: { message: "The model broke.", type: "server_error", code: "broken" } };
  const readers = [
    [(stream) => stream.next(), (again) => again.then(({ done }) => assert.ok(done))],
    [(stream) => stream.finalChatCompletion(), (again) => assert.rejects(again, TypeError)],
  ];
  for (const [ask, afterwards] of readers) {
    const stream = await readAhead(t, [failure]);
    const error = await ask(stream).then(assert.fail, (error) => error);
    assert.ok(error instanceof StreamError);
    assert.equal(error.code, "broken");
    assert.equal(error.requestId, "req_stream");
    assert.equal(error.partial.choices[0].message.content, "a");
    await afterwards(stream.next());
  }
});

test("events that were read ahead are in the document, in both branches and in the bytes", async (t) => {
  const rest = [chunk("b"), chunk("c", "stop")];
  const end = "data: [DONE]\n\n";
  const whole = await (await readAhead(t, rest, end)).finalChatCompletion();
  assert.equal(whole.choices[0].message.content, "abc");

  const texts = async (events) => {
    const found = [];
    for await (const event of events) found.push(textOf(event));
    return found;
  };
  const [left, right] = (await readAhead(t, rest, end)).tee();
  assert.deepEqual(await texts(left), ["b", "c"]);
  assert.deepEqual(await texts(right), ["b", "c"]);

  const lines = await new globalThis.Response((await readAhead(t, rest, end)).toReadableStream()).text();
  assert.deepEqual(
    lines
      .trim()
      .split("\n")
      .map((line) => textOf(JSON.parse(line))),
    ["b", "c"],
  );
});

test("events forwarded as bytes retain numbers as received", async (t) => {
  const server = await serve(t, (_, socket) => {
    beginEvents(socket);
    sendEvents(
      socket,
      '{"id":"c","object":"chat.completion.chunk","created":1,"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}],"x":12345678901234567890}',
    );
    socket.end("data: [DONE]\n\n");
  });
  const bytes = await new globalThis.Response((await open(server)).toReadableStream()).text();
  assert.match(bytes, /"x":12345678901234567890\}\n$/);
});

/** A server that sends events without a pause, on its own thread: a busy reader does not block it. */
const RESTLESS = `
  const { createServer } = require("node:http");
  const { parentPort, workerData } = require("node:worker_threads");
  const server = createServer((_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    const send = () => {
      while (response.write(workerData));
    };
    response.on("drain", send);
    send();
  });
  server.listen(0, "127.0.0.1", () => parentPort.postMessage(server.address().port));
`;

test("a server that sends without a pause does not block timers", async (t) => {
  const workerData = `data: ${JSON.stringify(chunk("x"))}\n\n`.repeat(500);
  const worker = new Worker(RESTLESS, { eval: true, workerData });
  t.after(() => worker.terminate());
  const [port] = await once(worker, "message");
  let [ticks, last, longest] = [0, performance.now(), 0];
  const timer = setInterval(() => {
    ticks += 1;
    longest = Math.max(longest, performance.now() - last);
    last = performance.now();
  }, 1);
  t.after(() => clearInterval(timer));
  const started = performance.now();
  for await (const event of await open({ url: `http://127.0.0.1:${port}` })) {
    // A reader that is slower than the server.
    for (let turn = 0; turn < 20; turn += 1) JSON.stringify(event);
    if (performance.now() - started > 1500) break;
  }
  longest = Math.max(longest, performance.now() - last);
  assert.ok(ticks > 5 && longest < 1000, `${ticks} turns, the longest pause ${longest} ms`);
});

/** Collects unreferenced objects: Bun and V8 have different functions for it. */
function garbageCollector() {
  if (globalThis.Bun !== undefined) return () => globalThis.Bun.gc(true);
  setFlagsFromString("--expose-gc");
  return runInNewContext("gc");
}

test("an unreferenced stream closes its connection, even after reading ahead", async (t) => {
  const server = await inTwoParts(t, [chunk("b")]);
  await (async () => {
    const stream = await open(server);
    await stream.next();
  })();
  await pause(READ_AHEAD);
  const collecting = setInterval(garbageCollector(), 20);
  t.after(() => clearInterval(collecting));
  await closedByClient(server.requests[0].socket, 3000);
});

test("a stream forwarded after its beginning was read retains the digits of its numbers", async (t) => {
  const long = JSON.stringify({ ...chunk("x"), note: '[{,"\\' }).replace(
    /}$/,
    ',"extra":12345678901234567890}',
  );
  const server = await serve(t, (_, socket) => {
    beginEvents(socket);
    socket.write(`data: ${long}\n\n`.repeat(3));
    socket.end("data: [DONE]\n\n");
  });
  const stream = await open(server);
  await stream.next();
  const text = await new Response(stream.toReadableStream()).text();
  assert.equal(text.match(/12345678901234567890/g)?.length, 2, text);
});
