// Streams whose events tell the answer so far.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Client, NotFoundError, StructuredOutputError } from "gatewright";
import { z } from "zod";

import { startGateway } from "./support/gateway.mjs";
import { answerWith, beginEvents, chunk, closedByClient, sendEvents, serve } from "./support/server.mjs";
import { readVectors } from "./support/vectors.mjs";

const City = z.object({
  name: z.string(),
  population: z.number().int(),
  districts: z.array(z.object({ name: z.string() })),
});
const PROMPT = { model: "model-sol", messages: [{ role: "user", content: "Tell me about rivers." }] };
const ANY = { type: "object" };

const ends = [];
let gateway;
before(async () => {
  gateway = new Client(await startGateway({ after: (end) => ends.push(end) }));
});
after(() => {
  for (const end of ends) end();
});

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

/** The JSON so far after the pieces of a text. */
async function soFar(t, pieces) {
  const { client } = await streaming(t, [
    ...pieces.map((piece) => chunk(piece)),
    chunk(undefined, "tool_calls"),
  ]);
  const stream = client.chat.completions.stream({ ...PROMPT, response_format: ANY });
  const values = [];
  try {
    for await (const event of stream) if (event.type === "content.delta") values.push(event.parsed);
  } catch (error) {
    if (!(error instanceof StructuredOutputError)) throw error;
  }
  return values.at(-1) ?? null;
}

test("vectors: structured/prefixes.json, whole and one character at a time", async (t) => {
  for (const { name, text, value } of readVectors("structured/prefixes.json").cases) {
    assert.deepEqual(await soFar(t, [text]), value, name);
    assert.deepEqual(await soFar(t, text.split("")), value, `${name}, in pieces`);
  }
});

test("a document that is too deep or too long has no value before its end", async (t) => {
  assert.deepEqual(await soFar(t, ["[".repeat(128)]), JSON.parse("[".repeat(128) + "]".repeat(128)));
  assert.equal(await soFar(t, ["[".repeat(129)]), null);
  const half = "x".repeat(5_000_000);
  assert.equal((await soFar(t, [`"${half}`])).length, 5_000_000);
  assert.equal(await soFar(t, [`"${half}`, half]), null);
});

test("vectors: structured/events.json", async (t) => {
  for (const { name, format, chunks, events, error: fails } of readVectors("structured/events.json").cases) {
    const { client } = await streaming(t, [...chunks, "[DONE]"]);
    const stream = client.chat.completions.stream({ ...PROMPT, ...(format && { response_format: City }) });
    const found = [];
    let error;
    try {
      for await (const event of stream) if (event.type !== "chunk") found.push(event);
    } catch (raised) {
      error = raised;
    }
    assert.equal(error instanceof StructuredOutputError, fails !== undefined, `${name}: ${error}`);
    assert.equal(found.length, events.length, name);
    for (const [index, expected] of events.entries()) {
      for (const [member, value] of Object.entries(expected)) {
        assert.deepEqual(found[index][member], value, `${name}: ${index} ${member}`);
      }
    }
  }
});

test("a gateway streams a value, and the final completion has it", async () => {
  const stream = gateway.chat.completions.stream({ ...PROMPT, response_format: City });
  const events = await collect(stream);
  assert.equal(events[0].type, "chunk");
  const done = events.find(({ type }) => type === "content.done");
  assert.ok(City.safeParse(done.parsed).success);
  const { choices } = await stream.finalChatCompletion();
  assert.deepEqual(choices[0].message.parsed, done.parsed);
  assert.equal(await stream.finalContent(), done.content);
});

test("the whole answer may come in place of the events, or beside them", async () => {
  const alone = gateway.chat.completions.stream(PROMPT);
  const text = await alone.finalContent();
  const beside = gateway.chat.completions.stream(PROMPT);
  const [events, final] = await Promise.all([collect(beside), beside.finalChatCompletion()]);
  assert.equal(final.choices[0].message.content, text);
  assert.equal(events.filter(({ type }) => type === "content.delta").at(-1).snapshot, text);
  await assert.rejects(collect(beside), /it can be read once/);
  await gateway.chat.completions.stream(PROMPT).done();
});

test("choices are kept apart", async (t) => {
  const piece = (index, content, finish_reason = null) => ({
    ...chunk(content),
    choices: [{ index, delta: { content }, finish_reason }],
  });
  const pieces = [piece(0, "a"), piece(1, "b"), piece(0, "c", "stop"), piece(1, "d", "stop")];
  const { client } = await streaming(t, [...pieces, "[DONE]"]);
  const events = await collect(client.chat.completions.stream({ ...PROMPT, n: 2 }));
  const done = events.filter(({ type }) => type === "content.done");
  assert.deepEqual(
    done.map(({ index, content }) => [index, content]),
    [
      [0, "ac"],
      [1, "bd"],
    ],
  );
});

test("an answer that was cut off ends the loop with its error, and the whole answer", async (t) => {
  const { client } = await streaming(t, [chunk('{"name": "Os'), chunk(undefined, "length"), "[DONE]"]);
  const stream = client.chat.completions.stream({ ...PROMPT, response_format: City });
  const error = await collect(stream).then(assert.fail, (error) => error);
  assert.ok(error instanceof StructuredOutputError);
  assert.match(error.message, /^chat\.completions\.stream: .*\(reason: length\)/);
  assert.equal(error.completion.choices[0].message.content, '{"name": "Os');
  assert.match(error.stack, /answer-so-far\.test\.mjs/);
});

test("leaving the loop closes the connection, and so does close", async (t) => {
  const { server, client } = await streaming(t, [chunk("one")], { open: true });
  for await (const { type } of client.chat.completions.stream(PROMPT)) {
    assert.equal(type, "chunk");
    break;
  }
  await closedByClient(server.socket, 500);
  const stream = client.chat.completions.stream(PROMPT);
  const events = stream[Symbol.asyncIterator]();
  await events.next();
  stream.close();
  await closedByClient(server.socket, 500);
});

test("a call that fails does so where its stream is read, and nowhere else", async (t) => {
  const server = await serve(t, (_, socket) => answerWith(socket, 404, { error: { message: "no" } }));
  const client = new Client({ baseUrl: server.url, apiKey: "sk-test", maxRetries: 0 });
  client.chat.completions.stream(PROMPT);
  const stream = client.responses.stream({ model: "m", input: "Hi" });
  await assert.rejects(collect(stream), NotFoundError);
  await assert.rejects(stream.finalResponse(), NotFoundError);
});

test("events of a response have the text so far, and the value", async () => {
  const stream = gateway.responses.stream({ model: "model-sol", input: "Oslo?", text: { format: City } });
  let snapshot = "";
  let parsed;
  for await (const event of stream) {
    if (event.type !== "response.output_text.delta") continue;
    assert.equal(event.snapshot, snapshot + event.delta);
    ({ snapshot, parsed } = event);
    assert.ok(!JSON.stringify(event).includes("snapshot"), "an event stays as it arrived");
  }
  const response = await stream.finalResponse();
  assert.equal(response.output_text, snapshot);
  assert.deepEqual(response.output_parsed, parsed);
});

test("a message is streamed as events and as text", async () => {
  const params = { model: "model-breeze", max_tokens: 64, messages: PROMPT.messages };
  const stream = gateway.messages.stream(params);
  const text = (await collect(stream.textStream())).join("");
  assert.equal(await stream.finalText(), text);
  assert.equal((await stream.finalMessage()).role, "assistant");
  const events = await collect(gateway.messages.stream(params));
  assert.equal(events[0].type, "message_start");
});
