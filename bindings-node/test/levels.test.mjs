// The other ways to read a stream: as frames, as text, as the whole document, twice, and as bytes.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";

import {
  CancelledError,
  Client,
  DecodeError,
  Events,
  responseOf,
  StreamError,
  StreamTruncatedError,
} from "gatewright";

import { beginEvents, chunk, closedByClient, sendEvents, serve } from "./support/server.mjs";

const PROMPT = { model: "model-sol", messages: [{ role: "user", content: "Hi" }], stream: true };
const CHUNKS = [chunk("Hel"), chunk("lo"), chunk(undefined, "stop")];

/** A server that answers every call with these events, and ends the connection by default. */
async function streaming(t, events, { open = false } = {}) {
  const server = await serve(t, (_, socket) => {
    server.socket = socket;
    beginEvents(socket);
    sendEvents(socket, ...events);
    if (!open) socket.end();
  });
  return server;
}

function create(server, options) {
  const client = new Client({ baseUrl: server.url, apiKey: "sk-test", maxRetries: 0 });
  return client.chat.completions.create(PROMPT, options);
}

async function collect(source) {
  const values = [];
  for await (const value of source) values.push(value);
  return values;
}

const rejection = (promise) => promise.then(assert.fail, (error) => error);

test("rawEvents yields every frame as received, including comments, names, IDs and [DONE]", async (t) => {
  const server = await serve(t, (_, socket) => {
    beginEvents(socket);
    socket.write(": hello\n\nid: 7\nretry: 250\nevent: ping\n\n");
    sendEvents(socket, ...CHUNKS, "[DONE]");
    socket.end();
  });
  const frames = await collect((await create(server)).rawEvents());
  assert.deepEqual(frames[0].comments, ["hello"]);
  const ping = frames.find(({ event }) => event === "ping");
  assert.deepEqual(ping, { event: "ping", data: null, id: "7", retryMs: 250, comments: [] });
  const data = frames.map((frame) => frame.data).filter((text) => text !== null);
  assert.deepEqual(data, [...CHUNKS.map((event) => JSON.stringify(event)), "[DONE]"]);
});

test("frames of a failed stream arrive before its error", async (t) => {
  const broken = { error: { message: "The model broke.", code: "broken" } };
  const stream = (await create(await streaming(t, [CHUNKS[0], broken]))).rawEvents();
  const frames = [];
  const error = await rejection(
    (async () => {
      for await (const frame of stream) frames.push(frame.data);
    })(),
  );
  assert.deepEqual(
    frames,
    [CHUNKS[0], broken].map((event) => JSON.stringify(event)),
  );
  assert.ok(error instanceof StreamError);
});

test("text yields the first choice's text as it arrives", async (t) => {
  const server = await streaming(t, [...CHUNKS, "[DONE]"]);
  assert.equal((await collect((await create(server)).text())).join(""), "Hello");
  const left = await streaming(t, CHUNKS.slice(0, 1), { open: true });
  for await (const text of (await create(left)).text()) {
    assert.equal(text, "Hel");
    break;
  }
  await closedByClient(left.socket, 500);
});

test("finalChatCompletion returns the document assembled from all chunks, and its response", async (t) => {
  const server = await streaming(t, [...CHUNKS, "[DONE]"]);
  const unread = await (await create(server)).finalChatCompletion();
  assert.equal(unread.object, "chat.completion");
  assert.equal(unread.choices[0].message.content, "Hello");
  assert.equal(unread.choices[0].finish_reason, "stop");
  assert.equal(responseOf(unread).requestId, "req_stream");

  const halfRead = await create(server);
  await halfRead.next();
  assert.deepEqual(await halfRead.finalChatCompletion(), unread);
  const read = await create(server);
  assert.deepEqual(await collect(read), CHUNKS);
  assert.deepEqual(await read.finalChatCompletion(), unread);
  const texts = await create(server);
  assert.deepEqual(await collect(texts.text()), ["Hel", "lo"]);
  const { data, response } = await texts.finalChatCompletion().withResponse();
  assert.deepEqual(data, unread);
  assert.equal(response.status, 200);
});

test("finalResponse returns the response of the last event, with its text", async (t) => {
  const response = {
    id: "r1",
    object: "response",
    created_at: 1,
    model: "model-sol",
    status: "completed",
    output: [
      {
        type: "message",
        id: "m1",
        role: "assistant",
        status: "completed",
        content: [{ type: "output_text", text: "Hello", annotations: [] }],
      },
    ],
  };
  const server = await streaming(t, [
    { type: "response.created", response: { ...response, status: "in_progress", output: [] } },
    { type: "response.completed", response },
  ]);
  const client = new Client({ baseUrl: server.url, apiKey: "sk-test" });
  const stream = await client.responses.create({ model: "model-sol", input: "Hi", stream: true });
  const [events] = stream.tee();
  assert.equal((await collect(events)).at(-1).response.output_text, "Hello");
  const final = await stream.finalResponse();
  assert.equal(final.status, "completed");
  assert.equal(final.output_text, "Hello");
});

test("a failed stream reports the received data: from events, text, and the final document", async (t) => {
  const server = await streaming(t, CHUNKS.slice(0, 2));
  for (const read of [
    (stream) => collect(stream),
    (stream) => collect(stream.text()),
    (stream) => collect(stream.rawEvents()),
    (stream) => stream.finalChatCompletion(),
    (stream) => collect(stream.tee()[1]),
    (stream) => collect(stream.toReadableStream()),
  ]) {
    const error = await rejection(read(await create(server)));
    assert.ok(error instanceof StreamTruncatedError, `${read}`);
    assert.equal(error.partial.choices[0].message.content, "Hello");
    assert.equal(error.received.events, 2);
    assert.ok(error.received.bytes > 50);
    assert.equal(error.requestId, "req_stream");
    assert.equal(error.headers.get("content-type"), "text/event-stream");
    assert.match(error.stack, /levels\.test\.mjs/);
  }
});

test("a signal ends every level, with the received data", async (t) => {
  const server = await streaming(t, CHUNKS.slice(0, 2), { open: true });
  for (const begin of [
    async (stream) => {
      await stream.next();
      await stream.next();
      return () => stream.next();
    },
    async (stream) => {
      const text = stream.text();
      assert.equal((await text.next()).value + ((await text.next()).value ?? ""), "Hello");
      return () => text.next();
    },
    async (stream) => {
      await stream.next();
      await stream.next();
      return () => stream.finalChatCompletion();
    },
  ]) {
    for (const abortsFirst of [true, false]) {
      const controller = new AbortController();
      const read = await begin(await create(server, { signal: controller.signal }));
      const abort = () => controller.abort(new Error("enough"));
      if (abortsFirst) abort();
      else setTimeout(abort, 20);
      const error = await rejection(read());
      assert.ok(error instanceof CancelledError, `${error}`);
      assert.equal(error.cause.message, "enough");
      assert.equal(error.partial.choices[0].message.content, "Hello");
      assert.equal(error.received.events, 2);
      await closedByClient(server.socket, 500);
    }
  }
});

test("a closed stream has no final document", async (t) => {
  const stream = await create(await streaming(t, CHUNKS.slice(0, 1), { open: true }));
  stream.close();
  await assert.rejects(stream.finalChatCompletion(), CancelledError);
});

test("closing a stream whose text is read elsewhere is an error of the text, which would look complete", async (t) => {
  const ends = [
    (stream) => stream.close(),
    (_, text) => text.close(),
    (stream) => stream[Symbol.asyncDispose](),
  ];
  for (const end of ends) {
    const stream = await create(await streaming(t, CHUNKS.slice(0, 1), { open: true }));
    const text = stream.text();
    const loop = text[Symbol.asyncIterator]();
    assert.equal((await loop.next()).value, "Hel");
    const rest = rejection(collect(loop));
    await end(stream, text);
    const error = await rest;
    assert.ok(error instanceof CancelledError, `${error}`);
    assert.match(error.message, /^chat\.completions\.create: the stream was closed before its end/);
  }
});

test("closing a stream within the loop over its text ends the loop", async (t) => {
  const stream = await create(await streaming(t, CHUNKS.slice(0, 1), { open: true }));
  const pieces = [];
  for await (const piece of stream.text()) {
    pieces.push(piece);
    stream.close();
  }
  assert.deepEqual(pieces, ["Hel"]);
});

test("a stream is read at one level: a second is rejected, not served partially", async (t) => {
  const server = await streaming(t, [...CHUNKS, "[DONE]"]);
  const started = await create(server);
  await started.next();
  assert.throws(() => started.text(), /text\(\): events of the stream have been read/);
  assert.throws(() => started.rawEvents(), TypeError);
  assert.deepEqual(await collect(started), CHUNKS.slice(1), "and the first goes on");
  const texts = await create(server);
  const text = texts.text();
  assert.throws(() => texts.tee(), /tee\(\): the stream is read by text\(\)/);
  await assert.rejects(texts.next(), TypeError);
  assert.deepEqual(await collect(text), ["Hel", "lo"]);
});

test("a second loop over a stream throws, whether the first has ended, was left or goes on", async (t) => {
  const server = await streaming(t, [...CHUNKS, "[DONE]"]);
  const again = /it can be read once/;
  const read = await create(server);
  assert.deepEqual(await collect(read), CHUNKS);
  await assert.rejects(collect(read), again);
  assert.throws(() => read.tee(), /tee\(\): the stream has ended, or was closed/);
  const left = await create(server);
  for await (const event of left) {
    assert.deepEqual(event, CHUNKS[0]);
    break;
  }
  await assert.rejects(collect(left), again);
  const texts = (await create(server)).text();
  for await (const _ of texts) break;
  await assert.rejects(collect(texts), again);
  const closed = await create(server);
  closed.close();
  await assert.rejects(collect(closed), again);
  const shared = await create(server);
  const [first, second] = await Promise.allSettled([collect(shared), collect(shared)]);
  assert.deepEqual(first.value, CHUNKS);
  assert.match(second.reason.message, again);
});

test("a loop over the iterator of a stream goes on where its first value was taken", async (t) => {
  const server = await streaming(t, [...CHUNKS, "[DONE]"]);
  const events = (await create(server))[Symbol.asyncIterator]();
  assert.deepEqual((await events.next()).value, CHUNKS[0]);
  assert.deepEqual(await collect(events), CHUNKS.slice(1));
});

test("the final document beside a loop takes no event from it, however slowly they arrive", async (t) => {
  const server = await serve(t, async (_, socket) => {
    beginEvents(socket);
    for (const event of [...CHUNKS, "[DONE]"]) {
      sendEvents(socket, event);
      await pause(20);
    }
    socket.end();
  });
  const before = await create(server);
  const early = before.finalChatCompletion();
  assert.deepEqual(await collect(before), CHUNKS);
  assert.equal((await early).choices[0].message.content, "Hello");
  const within = await create(server);
  const events = [];
  for await (const event of within) {
    events.push(event);
    assert.equal((await within.finalChatCompletion()).choices[0].message.content, "Hello");
  }
  assert.deepEqual(events, CHUNKS);
  const texts = await create(server);
  const text = texts.text();
  const [pieces, whole] = await Promise.all([collect(text), texts.finalChatCompletion()]);
  assert.deepEqual([pieces.join(""), whole.choices[0].message.content], ["Hello", "Hello"]);
});

test("after the final document, reading the events throws instead of yielding none", async (t) => {
  const server = await streaming(t, [...CHUNKS, "[DONE]"]);
  const taken = /the method of the final document has read the stream to its end/;
  const read = await create(server);
  await read.finalChatCompletion();
  assert.throws(() => read.text(), taken);
  const started = await create(server);
  assert.deepEqual((await started.next()).value, CHUNKS[0]);
  await started.finalChatCompletion();
  await assert.rejects(async () => {
    while (!(await started.next()).done);
  }, taken);
});

test("the text of a response that failed ends with its error", async (t) => {
  const response = { id: "r1", object: "response", created_at: 1, model: "model-sol", output: [] };
  const error = { code: "server_error", message: "The model broke." };
  const server = await streaming(t, [
    { type: "response.created", response: { ...response, status: "in_progress" } },
    { type: "response.output_text.delta", item_id: "m", output_index: 0, content_index: 0, delta: "Hel" },
    { type: "response.failed", response: { ...response, status: "failed", error } },
  ]);
  const client = new Client({ baseUrl: server.url, apiKey: "sk-test", maxRetries: 0 });
  const stream = await client.responses.create({ model: "model-sol", input: "Hi", stream: true });
  const texts = [];
  const failed = await rejection(
    (async () => {
      for await (const text of stream.text()) texts.push(text);
    })(),
  );
  assert.deepEqual(texts, ["Hel"]);
  assert.ok(failed instanceof StreamError);
  assert.match(failed.message, /^responses\.create: .*The model broke\./);
  assert.equal(failed.code, "server_error");
  assert.equal(failed.partial.status, "failed");
});

test("tee returns two readers, each with every event, at their own pace", async (t) => {
  const server = await streaming(t, [...CHUNKS, "[DONE]"]);
  const stream = await create(server);
  const [left, right] = stream.tee();
  assert.deepEqual((await left.next()).value, CHUNKS[0]);
  assert.deepEqual(await collect(right), CHUNKS);
  assert.deepEqual(await collect(left), CHUNKS.slice(1));
  assert.equal((await stream.finalChatCompletion()).choices[0].message.content, "Hello");

  const whole = await create(server);
  const branches = whole.tee();
  const [final, ...events] = await Promise.all([whole.finalChatCompletion(), ...branches.map(collect)]);
  assert.equal(final.choices[0].message.content, "Hello");
  assert.deepEqual(events, [CHUNKS, CHUNKS]);
});

test("the connection closes when both readers of a tee do", async (t) => {
  const server = await streaming(t, CHUNKS.slice(0, 2), { open: true });
  const [left, right] = (await create(server)).tee();
  for await (const event of left) {
    assert.deepEqual(event, CHUNKS[0]);
    break;
  }
  assert.deepEqual((await right.next()).value, CHUNKS[0]);
  assert.deepEqual((await right.next()).value, CHUNKS[1]);
  assert.equal(server.socket.destroyed, false);
  const waiting = right.next();
  right.close();
  assert.deepEqual(await waiting, { done: true, value: undefined });
  await closedByClient(server.socket, 500);
});

test("toReadableStream writes events as lines of JSON, and fromReadableStream reads them", async (t) => {
  const events = [...CHUNKS.slice(0, 2), { ...chunk("a\nb\u2028c"), nested: { x: [1] } }, CHUNKS[2]];
  const server = await serve(t, (_, socket) => {
    beginEvents(socket);
    sendEvents(socket, ...events.slice(0, 2));
    // A document over several data lines is still one line.
    for (const line of JSON.stringify(events[2], null, 1).split("\n")) socket.write(`data: ${line}\n`);
    socket.write("\n");
    sendEvents(socket, events[3], "[DONE]");
    socket.end();
  });
  const bytes = Buffer.concat(await collect((await create(server)).toReadableStream()));
  const lines = bytes.toString().split("\n");
  assert.equal(lines.pop(), "");
  assert.deepEqual(
    lines.map((line) => JSON.parse(line)),
    events,
  );
  assert.deepEqual(
    await collect(Events.fromReadableStream((await create(server)).toReadableStream())),
    events,
  );
  // In packets of three bytes, which split characters.
  const packets = new ReadableStream({
    start(controller) {
      for (let at = 0; at < bytes.length; at += 3) controller.enqueue(bytes.subarray(at, at + 3));
      controller.close();
    },
  });
  assert.deepEqual(await collect(Events.fromReadableStream(packets)), events);
});

test("fromReadableStream ignores blank lines, a byte order mark and a missing last line break", async () => {
  const bytes = new Blob(["\ufeff{}\r\n\n \t\n", '{"a": 1}']).stream();
  assert.deepEqual(await collect(Events.fromReadableStream(bytes)), [{}, { a: 1 }]);
  const other = Events.fromReadableStream(new Blob(["\u00a0\n"]).stream());
  await assert.rejects(collect(other), DecodeError);
});

test("canceling the bytes closes the connection, and so does closing their reader", async (t) => {
  const server = await streaming(t, CHUNKS.slice(0, 1), { open: true });
  const reader = (await create(server)).toReadableStream().getReader();
  assert.deepEqual(JSON.parse(Buffer.from((await reader.read()).value)), CHUNKS[0]);
  await reader.cancel();
  await closedByClient(server.socket, 500);
  for await (const event of Events.fromReadableStream((await create(server)).toReadableStream())) {
    assert.deepEqual(event, CHUNKS[0]);
    break;
  }
  await closedByClient(server.socket, 500);
  const bytes = (await create(server)).toReadableStream();
  const signal = AbortSignal.timeout(250);
  const events = Events.fromReadableStream(bytes, { signal });
  await events.next();
  const error = await rejection(events.next());
  assert.ok(error instanceof CancelledError);
  assert.equal(error.cause.name, "TimeoutError");
  await closedByClient(server.socket, 500);
});

test("await using closes a stream at the end of its block", async (t) => {
  const server = await streaming(t, CHUNKS.slice(0, 1), { open: true });
  const stream = await create(server);
  await stream[Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")]();
  await closedByClient(server.socket, 500);
});

test("a stream's events can be read from the promise", async (t) => {
  const server = await streaming(t, [...CHUNKS, "[DONE]"]);
  assert.deepEqual(await collect(create(server)), CHUNKS);
});
