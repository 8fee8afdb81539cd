// The events of streams by vectors, and listeners to them.

import assert from "node:assert/strict";
import { test } from "node:test";

import {
  CancelledError,
  Client,
  NotFoundError,
  StreamTruncatedError,
  StructuredOutputError,
} from "gatewright";
import { z } from "zod";

import { runModule } from "./support/process.mjs";
import { answerWith, beginEvents, chunk, closedByClient, sendEvents, serve } from "./support/server.mjs";
import { readVectors } from "./support/vectors.mjs";

const City = z.object({
  name: z.string(),
  population: z.number().int(),
  districts: z.array(z.object({ name: z.string() })),
});
const PROMPT = { model: "m", messages: [{ role: "user", content: "Hi" }] };
const MESSAGE = { ...PROMPT, max_tokens: 1 };
const CHUNKS = [chunk("on"), chunk("e"), chunk(undefined, "stop"), "[DONE]"];

/** A client of a server that streams these events; `server.socket` is the connection. */
async function streaming(t, events, { open = false } = {}) {
  const server = await serve(t, (_, socket) => {
    server.socket = socket;
    beginEvents(socket);
    sendEvents(socket, ...events);
    if (!open) socket.end();
  });
  return { server, client: new Client({ baseUrl: server.url, apiKey: "sk-test", maxRetries: 0 }) };
}

async function collect(source) {
  const values = [];
  for await (const value of source) values.push(value);
  return values;
}

function assertEvents(events, expected, name) {
  assert.deepEqual(
    events.map(({ type }) => type),
    expected.map(({ type }) => type),
    name,
  );
  for (const [index, members] of expected.entries()) {
    for (const [member, value] of Object.entries(members)) {
      assert.deepEqual(events[index][member], value, `${name}: ${index} ${member}`);
    }
  }
}

const messageCases = readVectors("structured/message_events.json").cases;
const textStream = messageCases.find(({ name }) => name === "text").stream;

test("vectors: structured/response_events.json", async (t) => {
  for (const { name, format, stream, events } of readVectors("structured/response_events.json").cases) {
    const { client } = await streaming(t, stream);
    const text = format ? { text: { format: City } } : {};
    assertEvents(await collect(client.responses.stream({ model: "m", input: "x", ...text })), events, name);
  }
});

test("vectors: structured/message_events.json", async (t) => {
  for (const { name, stream, events, text } of messageCases) {
    const { client } = await streaming(t, stream);
    const reader = client.messages.stream(MESSAGE);
    assert.equal(reader.currentMessage, undefined);
    const found = [];
    for await (const event of reader) {
      found.push(event);
      assert.notEqual(reader.currentMessage, undefined);
    }
    assertEvents(found, events, name);
    const final = await reader.finalMessage();
    assert.deepEqual(found.at(-1).message, final, name);
    assert.equal(found.at(-1).message.text, final.text);

    const texts = client.messages.stream(MESSAGE);
    assert.equal((await collect(texts.textStream())).join(""), text, name);
    assert.deepEqual(texts.currentMessage, final, name);
    assert.equal(await texts.finalText(), text);
    const heard = [];
    await client.messages
      .stream(MESSAGE)
      .on("text", (piece) => heard.push(piece))
      .done();
    assert.equal(heard.join(""), text, name);
  }
});

test("the message so far grows with its events, which stay as they arrived", async (t) => {
  const { stream } = messageCases.find(({ name }) => name.includes("in between"));
  const { client } = await streaming(t, stream);
  const reader = client.messages.stream(MESSAGE);
  const inputs = [];
  const raw = [];
  for await (const event of reader) {
    if (event.type === "input_json") {
      const calls = reader.currentMessage.content.filter(({ type }) => type === "tool_use");
      inputs.push(JSON.parse(JSON.stringify(calls.map(({ input }) => input))));
    }
    if (/^(message|content_block)_/.test(event.type)) raw.push(event);
  }
  assert.deepEqual(inputs, [
    [{}, {}],
    [{ place: "Os" }, {}],
    [{ place: "Os" }, {}],
    [{ place: "Oslo" }, {}],
    [{ place: "Oslo" }, { n: 12 }],
  ]);
  assert.deepEqual(JSON.parse(JSON.stringify(raw)), stream);
});

test("what is in the streams' vectors adds up to the final message", async (t) => {
  for (const { name, operation, data, final, text } of readVectors("sse/streams.json").cases) {
    // Of events that deviate, the whole message has what they lack.
    if (operation !== "create_message" || !final || name.includes("deviates")) continue;
    const { client } = await streaming(t, data);
    const reader = client.messages.stream(MESSAGE);
    const events = await collect(reader);
    assert.deepEqual(events.at(-1).message, final, name);
    const texts = events.filter(({ type }) => type === "text").map((event) => event.text);
    assert.equal(texts.join(""), text, name);
  }
});

test("listeners of a message get what those of other SDKs get", async (t) => {
  const { stream } = messageCases.find(({ name }) => name.includes("in between"));
  const { client } = await streaming(t, stream);
  const calls = [];
  const note =
    (name) =>
    (...given) =>
      calls.push([name, ...given]);
  const reader = client.messages.stream(MESSAGE);
  const names = ["connect", "thinking", "signature", "inputJson", "contentBlock", "finalMessage", "end"];
  for (const name of names) {
    assert.equal(reader.on(name, note(name)), reader);
  }
  const message = await reader.finalMessage();
  assert.deepEqual(calls, [
    ["connect"],
    ["thinking", "Hm, ", "Hm, "],
    ["thinking", "so.", "Hm, so."],
    ["signature", "c2ln"],
    ["contentBlock", message.content[0]],
    ["inputJson", "", {}],
    ["inputJson", '{"place": "Os', { place: "Os" }],
    ["inputJson", '{"n": 1', {}],
    ["inputJson", 'lo"}', { place: "Oslo" }],
    ["inputJson", "2}", { n: 12 }],
    ["contentBlock", message.content[1]],
    ["contentBlock", message.content[2]],
    ["finalMessage", message],
    ["end"],
  ]);
});

test("listeners of a chat completion and of a response get events by their type", async (t) => {
  const { client } = await streaming(t, CHUNKS);
  const calls = [];
  const chat = client.chat.completions
    .stream(PROMPT)
    .on("content", (delta, snapshot) => calls.push([delta, snapshot]))
    .on("content.done", ({ content }) => calls.push([content]))
    .on("chunk", ({ id }) => calls.push(id))
    .on("finalContent", (content) => calls.push(["final", content]));
  const completion = await chat.finalChatCompletion();
  assert.deepEqual(calls, ["c1", ["on", "on"], "c1", ["e", "one"], "c1", ["one"], ["final", "one"]]);
  assert.deepEqual(await chat.finalMessage(), completion.choices[0].message);

  const [{ stream }] = readVectors("structured/response_events.json").cases;
  const { client: other } = await streaming(t, stream);
  const types = [];
  const snapshots = [];
  const responses = other.responses
    .stream({ model: "m", input: "x" })
    .on("event", ({ type }) => types.push(type))
    .on("response.function_call_arguments.delta", ({ snapshot }) => snapshots.push(snapshot));
  assert.equal((await responses.emitted("finalResponse")).status, "completed");
  assert.deepEqual(
    types,
    stream.map(({ type }) => type),
  );
  assert.deepEqual(snapshots, ["", '{"place": "Os', "{}", '{"place": "Oslo"}']);
});

test("a loop calls the listeners, each before it gets the event", async (t) => {
  const { client } = await streaming(t, textStream);
  const order = [];
  const reader = client.messages.stream(MESSAGE).on("text", (text) => order.push(`listener ${text}`));
  for await (const event of reader) if (event.type === "text") order.push(`loop ${event.text}`);
  assert.deepEqual(order, ["listener on", "loop on", "listener e", "loop e"]);
  assert.equal(await reader.finalText(), "one");
  await reader.done();
});

test("a listener is called once, or no longer", async (t) => {
  const { client } = await streaming(t, textStream);
  const calls = [];
  const removed = () => calls.push("removed");
  const twice = (text) => calls.push(text);
  await client.messages
    .stream(MESSAGE)
    .once("text", (text) => calls.push(`once ${text}`))
    .on("text", removed)
    .off("text", removed)
    .off("text", removed)
    .on("text", twice)
    .on("text", twice)
    .off("text", twice)
    .done();
  assert.deepEqual(calls, ["once on", "on", "e"]);
});

test("a loop that begins after its listeners have read is an error, not an empty one", async (t) => {
  const { client } = await streaming(t, textStream);
  const reader = client.messages.stream(MESSAGE).on("text", () => {});
  await reader.done();
  await assert.rejects(collect(reader), /TypeError: the stream is read by its listeners/);
  await assert.rejects(collect(reader.textStream()), TypeError);
  assert.equal(await reader.finalText(), "one");
});

test("an event that has come is waited for, and one that never comes is an error", async (t) => {
  const { client } = await streaming(t, textStream);
  const reader = client.messages.stream(MESSAGE);
  const [first, block, thinking] = [
    reader.emitted("text"),
    reader.emitted("contentBlock"),
    reader.emitted("thinking"),
  ];
  assert.deepEqual(await first, ["on", "on"]);
  assert.deepEqual(await block, { type: "text", text: "one" });
  await assert.rejects(thinking, /TypeError: the stream ended without the event thinking/);
});

test("an error goes to its listeners, to whoever waits for the end, and to the loop", async (t) => {
  const { client } = await streaming(t, textStream.slice(0, 3));
  const errors = [];
  let ends = 0;
  const listening = () =>
    client.messages
      .stream(MESSAGE)
      .on("error", (error) => errors.push(error))
      .on("end", () => {
        ends += 1;
      });
  await assert.rejects(listening().done(), StreamTruncatedError);
  await assert.rejects(listening().finalMessage(), StreamTruncatedError);
  await assert.rejects(listening().emitted("message"), StreamTruncatedError);
  await assert.rejects(collect(listening()), StreamTruncatedError);
  assert.ok((await listening().emitted("error")) instanceof StreamTruncatedError);
  assert.deepEqual([errors.length, ends], [5, 5]);
  assert.ok(errors.every((error) => error instanceof StreamTruncatedError));
  assert.ok(errors.every(({ partial }) => partial.content[0].text === "on"));

  const server = await serve(t, (_, socket) => answerWith(socket, 404, { error: { message: "no" } }));
  const missing = new Client({ baseUrl: server.url, apiKey: "sk-test", maxRetries: 0 });
  await assert.rejects(missing.messages.stream(MESSAGE).on("text", assert.fail).done(), NotFoundError);
});

test("what an answer cannot become is an error of its listeners", async (t) => {
  const { client } = await streaming(t, [chunk('{"name": "Os'), chunk(undefined, "length"), "[DONE]"]);
  const reader = client.chat.completions.stream({ ...PROMPT, response_format: City });
  const parsed = [];
  reader.on("content.delta", (event) => parsed.push(event.parsed));
  await assert.rejects(reader.finalChatCompletion(), StructuredOutputError);
  assert.deepEqual(parsed, [{ name: "Os" }]);
});

test("an error of a listener ends the stream with it", async (t) => {
  const { server, client } = await streaming(t, textStream.slice(0, 3), { open: true });
  const fails = () => {
    throw new RangeError("mine");
  };
  await assert.rejects(client.messages.stream(MESSAGE).on("text", fails).done(), /RangeError: mine/);
  await closedByClient(server.socket, 500);
  await assert.rejects(collect(client.messages.stream(MESSAGE).on("text", fails)), /RangeError: mine/);
});

test("closing and leaving the loop emit abort", async (t) => {
  const { client } = await streaming(t, textStream.slice(0, 3), { open: true });
  const closed = client.messages.stream(MESSAGE);
  closed.on("text", () => closed.close());
  assert.ok((await closed.emitted("abort")) instanceof CancelledError);
  await assert.rejects(closed.done(), CancelledError);

  const left = client.messages.stream(MESSAGE).on("error", assert.fail);
  for await (const { type } of left) if (type === "text") break;
  await assert.rejects(left.done(), CancelledError);

  const controller = new AbortController();
  const aborted = client.messages.stream(MESSAGE, { signal: controller.signal });
  aborted.on("text", () => controller.abort());
  await assert.rejects(aborted.done(), CancelledError);
});

/** A server that never answers, a client of it, and the connection of a request. */
async function silent(t) {
  let arrived;
  const connection = new Promise((resolve) => {
    arrived = resolve;
  });
  const server = await serve(t, (_, socket) => arrived(socket));
  return { connection, client: new Client({ baseUrl: server.url, apiKey: "sk-test", maxRetries: 0 }) };
}

const READERS = {
  "chat.completions": (client) => client.chat.completions.stream(PROMPT),
  responses: (client) => client.responses.stream({ model: "m", input: "hi" }),
  messages: (client) => client.messages.stream(MESSAGE),
};

for (const [name, open] of Object.entries(READERS)) {
  test(`${name}: closing a stream before its headers arrive ends the call`, async (t) => {
    const { connection, client } = await silent(t);
    const reader = open(client);
    const heard = [];
    for (const name of ["connect", "error", "abort", "end"]) reader.on(name, () => heard.push(name));
    const done = assert.rejects(reader.done(), {
      name: "CancelledError",
      message: `${name}.stream: the stream was closed before its end`,
    });
    const socket = await connection;
    reader.close();
    await done;
    await closedByClient(socket);
    assert.deepEqual(heard, ["abort", "end"]);
  });
}

test("a loop over a stream that is closed before its headers arrive ends with CancelledError", async (t) => {
  const { connection, client } = await silent(t);
  const reader = client.messages.stream(MESSAGE);
  const looped = assert.rejects(collect(reader), CancelledError);
  const socket = await connection;
  reader.close();
  await looped;
  await closedByClient(socket);
  await assert.rejects(collect(reader), CancelledError);
  await assert.rejects(reader.finalMessage(), CancelledError);
});

test("a stream that is closed in the turn in which it is opened ends at once", async (t) => {
  const { client } = await silent(t);
  const heard = [];
  const closed = client.messages.stream(MESSAGE);
  for (const name of ["connect", "text", "streamEvent", "message", "error", "abort", "end"]) {
    closed.on(name, () => heard.push(name));
  }
  closed.close();
  const message = assert.rejects(closed.finalMessage(), CancelledError);
  await assert.rejects(closed.done(), CancelledError);
  await message;
  assert.deepEqual(heard, ["abort", "end"]);
});

test("a stream that its caller closes causes no unhandled rejection", async (t) => {
  const silence = await serve(t, () => {});
  const { server } = await streaming(t, textStream.slice(0, 3), { open: true });
  const { output, code } = await runModule(
    `import { Client } from "gatewright";
     const opened = (baseUrl) => new Client({ baseUrl, maxRetries: 0 }).messages.stream(${JSON.stringify(MESSAGE)});
     const ended = (reader) => new Promise((resolve) => reader.on("end", resolve));
     opened(${JSON.stringify(silence.url)}).close();
     const early = opened(${JSON.stringify(silence.url)});
     const soon = ended(early);
     early.close();
     await soon;
     const late = opened(${JSON.stringify(server.url)}).on("text", () => late.close());
     await ended(late);
     console.log("ended");`,
  );
  assert.deepEqual([code, output], [0, "ended\n"]);
});

test("an error that nobody hears of is unhandled", async (t) => {
  const { server } = await streaming(t, textStream.slice(0, 3));
  const { output, code } = await runModule(
    `import { Client } from "gatewright";
     const client = new Client({ baseUrl: ${JSON.stringify(server.url)}, apiKey: "sk-test", maxRetries: 0 });
     client.messages.stream(${JSON.stringify(MESSAGE)}).on("text", () => {});`,
  );
  assert.notEqual(code, 0);
  assert.match(output, /StreamTruncatedError/);
});
