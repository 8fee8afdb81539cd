// Streams: every event, in order, and an end that is never silent.

import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";

import {
  CancelledError,
  Client,
  DecodeError,
  RateLimitError,
  responseOf,
  Stream,
  StreamError,
  StreamTruncatedError,
} from "gatewright";

import { answerWith, beginEvents, chunk, closedByClient, sendEvents, serve } from "./support/server.mjs";
import { promptly } from "./support/timing.mjs";

const PROMPT = { model: "model-sol", messages: [{ role: "user", content: "Hi" }], stream: true };

function open(server, options) {
  const client = new Client({ baseUrl: server.url, apiKey: "sk-test", maxRetries: 0 });
  return client.chat.completions.create(PROMPT, options);
}

const textOf = (event) => event.choices[0].delta.content ?? "";

async function collect(stream) {
  const events = [];
  for await (const event of stream) events.push(event);
  return events;
}

/** A server that sends the first chunks and then leaves the connection open; `socket` is that connection. */
async function halfway(t, ...texts) {
  const server = await serve(t, (_, socket) => {
    server.socket = socket;
    beginEvents(socket);
    sendEvents(socket, ...texts.map((text) => chunk(text)));
  });
  return server;
}

test("events arrive parsed, in order, and the stream ends at its terminator (2.3)", async (t) => {
  const events = [chunk("Hel"), chunk("lo"), chunk(undefined, "stop")];
  const server = await serve(t, (_, socket) => {
    beginEvents(socket);
    sendEvents(socket, ...events, "[DONE]");
  });
  const stream = await open(server);
  assert.ok(stream instanceof Stream);
  assert.equal(stream.response.requestId, "req_stream");
  assert.equal(responseOf(stream), stream.response);
  assert.deepEqual(await collect(stream), events);
  assert.equal(JSON.parse(server.requests[0].body).stream, true);
  assert.deepEqual(await stream.next(), { done: true, value: undefined });
});

test("many events in one packet and one event in many packets are the same events", async (t) => {
  const events = Array.from({ length: 500 }, (_, index) => chunk(`ü${index}`));
  events.push(chunk(undefined, "stop"));
  const bytes = Buffer.from(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(""));
  const server = await serve(t, async (_, socket) => {
    beginEvents(socket);
    for (let at = 0; at < bytes.length; at += 1009) socket.write(bytes.subarray(at, at + 1009));
    socket.end("data: [DONE]\n\n");
  });
  assert.deepEqual(await collect(await open(server)), events);
});

test("an always-streaming operation needs no switch", async (t) => {
  const parts = [
    { candidates: [{ content: { parts: [{ text: "a" }] } }] },
    { candidates: [{ content: { parts: [{ text: "b" }] }, finishReason: "STOP" }] },
  ];
  const server = await serve(t, (_, socket) => {
    beginEvents(socket);
    sendEvents(socket, ...parts);
    socket.end();
  });
  const client = new Client({ baseUrl: server.url, apiKey: "sk-test" });
  const stream = await client.native.streamGenerateContent({
    model: "m",
    contents: [{ parts: [{ text: "x" }] }],
  });
  assert.deepEqual(await collect(stream), parts);
  assert.equal(server.requests[0].target, "/v1beta/models/m:streamGenerateContent?alt=sse");
});

test("leaving the loop closes the connection immediately", async (t) => {
  const server = await halfway(t, "one", "two");
  for await (const event of await open(server)) {
    assert.equal(textOf(event), "one");
    break;
  }
  await closedByClient(server.socket, 500);
});

test("close, asyncDispose and an error in the loop close the connection immediately", async (t) => {
  const endings = [
    (stream) => stream.close(),
    (stream) => stream[Symbol.asyncDispose](),
    async (stream) => {
      await assert.rejects(async () => {
        for await (const _ of stream) throw new Error("from the loop");
      }, /from the loop/);
    },
  ];
  for (const end of endings) {
    const server = await halfway(t, "one");
    const stream = await open(server);
    await end(stream);
    await closedByClient(server.socket, 500);
    assert.deepEqual(await stream.next(), { done: true, value: undefined });
  }
});

test("close ends a read that is waiting", async (t) => {
  const server = await halfway(t);
  const stream = await open(server);
  const waiting = stream.next();
  setTimeout(() => stream.close(), 20);
  assert.deepEqual(await waiting, { done: true, value: undefined });
  await closedByClient(server.socket, 500);
});

test("a stream that has been read leaves no listener at its signal, and a late abort changes nothing", async (t) => {
  const server = await serve(t, (_, socket) => {
    beginEvents(socket);
    sendEvents(socket, chunk("Hel"), chunk("lo"), chunk(undefined, "stop"), "[DONE]");
  });
  const controller = new AbortController();
  const { signal } = controller;
  const whole = await open(server, { signal });
  assert.equal((await whole.finalChatCompletion()).choices[0].message.content, "Hello");
  const events = await open(server, { signal });
  await collect(events);
  const raw = await open(server, { signal });
  await collect(raw.rawEvents());
  const texts = await open(server, { signal });
  assert.equal((await collect(texts.text())).join(""), "Hello");
  assert.equal(getEventListeners(signal, "abort").length, 0);
  controller.abort();
  assert.equal((await texts.finalChatCompletion()).choices[0].message.content, "Hello");
});

test("a signal ends the stream within 100 ms, with its reason as the cause", async (t) => {
  const server = await halfway(t, "one");
  await promptly(100, async () => {
    const controller = new AbortController();
    const stream = await open(server, { signal: controller.signal });
    assert.equal(textOf((await stream.next()).value), "one");
    const read = stream.next().then(assert.fail, (error) => error);
    await pause(20);
    const aborted = performance.now();
    controller.abort();
    const error = await read;
    const taken = performance.now() - aborted;
    assert.ok(error instanceof CancelledError);
    assert.equal(error.cause, controller.signal.reason);
    await closedByClient(server.socket, 500);
    assert.deepEqual(await stream.next(), { done: true, value: undefined });
    return taken;
  });
});

test("overlapping reads get one event each, in order", async (t) => {
  const server = await serve(t, (_, socket) => {
    beginEvents(socket);
    sendEvents(socket, chunk("a"), chunk("b"));
    setTimeout(() => {
      sendEvents(socket, chunk("c", "stop"));
      socket.end("data: [DONE]\n\n");
    }, 30);
  });
  const stream = await open(server);
  const reads = await Promise.all([stream.next(), stream.next(), stream.next(), stream.next()]);
  assert.deepEqual(
    reads.map((read) => (read.done ? null : textOf(read.value))),
    ["a", "b", "c", null],
  );
});

test("a stream that ends early throws after its events", async (t) => {
  const server = await serve(t, (_, socket) => {
    beginEvents(socket);
    sendEvents(socket, chunk("a"), chunk("b"));
    socket.end();
  });
  const texts = [];
  const error = await (async () => {
    for await (const event of await open(server)) texts.push(textOf(event));
  })().then(assert.fail, (error) => error);
  assert.deepEqual(texts, ["a", "b"]);
  assert.ok(error instanceof StreamTruncatedError);
  assert.equal(error.requestId, "req_stream");
  assert.match(error.stack, /stream\.test\.mjs/);
});

test("an error in the stream is thrown", async (t) => {
  const server = await serve(t, (_, socket) => {
    beginEvents(socket);
    sendEvents(socket, chunk("a"), {
      error: { message: "The model broke.", type: "server_error", code: "broken" },
    });
  });
  const error = await collect(await open(server)).then(assert.fail, (error) => error);
  assert.ok(error instanceof StreamError);
  assert.equal(error.code, "broken");
  assert.match(error.message, /The model broke\./);
});

test("an event that is not JSON throws after the events before it", async (t) => {
  const server = await serve(t, (_, socket) => {
    beginEvents(socket);
    sendEvents(socket, chunk("a"), "{broken");
  });
  const stream = await open(server);
  assert.equal(textOf((await stream.next()).value), "a");
  await assert.rejects(stream.next(), DecodeError);
});

test("a rejected stream is an error of the call", async (t) => {
  const server = await serve(t, (_, socket) => answerWith(socket, 429, { error: { message: "Slow down." } }));
  await assert.rejects(open(server), RateLimitError);
});
