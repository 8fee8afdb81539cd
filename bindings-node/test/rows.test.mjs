// Similar events are transferred once, together with their differences: this must not be noticeable.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client } from "gatewright";

import { beginEvents, chunk, serve } from "./support/server.mjs";

const PROMPT = { model: "model-sol", messages: [{ role: "user", content: "Hi" }], stream: true };

/** The stream of a server that sends these events, as text, in one packet. */
async function open(t, documents) {
  const server = await serve(t, (_, socket) => {
    beginEvents(socket);
    socket.write([...documents, "[DONE]"].map((document) => `data: ${document}\n\n`).join(""));
  });
  return new Client({ baseUrl: server.url, apiKey: "sk-test", maxRetries: 0 }).chat.completions.create(
    PROMPT,
  );
}

async function collect(stream) {
  const events = [];
  for await (const event of stream) events.push(event);
  return events;
}

/** Chunks with these texts as JSON, and a last one. `more`: further members. */
function chunks(texts, more = "") {
  const end = JSON.stringify(chunk(undefined, "stop"));
  const one = (text) =>
    JSON.stringify(chunk("@"))
      .replace('"@"', () => text)
      .replace(/}$/, () => `${more}}`);
  return [...texts.map(one), end];
}

const TEXTS = ['"a"', '"b"', '"\\n\\u00e9\\""', '""', '"é🙂"', '"__proto__"', '"f"'];

test("events match what was sent, whatever their texts are", async (t) => {
  const documents = chunks(TEXTS);
  assert.deepEqual(
    await collect(await open(t, documents)),
    documents.map((document) => JSON.parse(document)),
  );
});

test("an event is a separate object, including everything in it", async (t) => {
  const events = await collect(await open(t, chunks(TEXTS, ',"extra":{"list":[{"a":1}]}')));
  for (const event of events.slice(0, -1)) {
    assert.deepEqual(event.extra, { list: [{ a: 1 }] });
    event.extra.list[0].a = 2;
    event.choices[0].delta.content = "changed";
    event.choices.push(1);
  }
  assert.equal(new Set(events.slice(0, -1).map(({ extra }) => extra.list[0])).size, TEXTS.length);
});

test("a duplicate member, or one called __proto__, is parsed as JSON.parse does", async (t) => {
  for (const more of [
    ',"extra":{"a":1},"extra":{"b":2}',
    ',"extra":{"__proto__":{"a":1}},"__proto__":{"b":{}}',
    ',"__proto__":1',
  ]) {
    const documents = chunks(TEXTS, more);
    const events = await collect(await open(t, documents));
    for (const [index, event] of events.entries()) {
      const expected = JSON.parse(documents[index]);
      assert.deepEqual(Object.entries(event), Object.entries(expected), more);
      assert.equal(Object.getPrototypeOf(event), Object.prototype, more);
      if (expected.extra === undefined) continue;
      assert.deepEqual(Object.entries(event.extra), Object.entries(expected.extra), more);
    }
  }
});

test("documents forwarded after the first events retain all digits of their numbers", async (t) => {
  const documents = chunks(TEXTS, ',"extra":12345678901234567890');
  const stream = await open(t, documents);
  await stream.next();
  await stream.next();
  await stream.next();
  const lines = (await new Response(stream.toReadableStream()).text()).trimEnd().split("\n");
  assert.deepEqual(
    lines.map((line) => JSON.parse(line)),
    documents.slice(3).map((text) => JSON.parse(text)),
  );
  assert.equal(lines.filter((line) => line.endsWith(":12345678901234567890}")).length, TEXTS.length - 3);
});

test("members whose names contain escapes are parsed as JSON.parse does", async (t) => {
  for (const written of [
    '"cont\\u0065nt"',
    '"\\u0063hoices"',
    '"a\\"b\\\\"',
    '"\\ud83d\\ude42"',
    '"\\u005f_proto__"',
  ]) {
    const documents = chunks(TEXTS, `,"extra":{${written}:{"a":1},"z":[{${written}:2}]},${written}:[]`);
    assert.deepEqual(
      await collect(await open(t, documents)),
      documents.map((document) => JSON.parse(document)),
      written,
    );
  }
});

test("members may be nested as deeply as JSON.parse allows", async (t) => {
  const deep = `${'{"a":['.repeat(20_000)}1${"]}".repeat(20_000)}`;
  const documents = chunks(TEXTS, `,"extra":${deep}`);
  const events = await collect(await open(t, documents));
  assert.equal(events.length, documents.length);
  for (const [index, event] of events.slice(0, -1).entries()) {
    assert.equal(event.choices[0].delta.content, JSON.parse(TEXTS[index]));
    let levels = 0;
    for (let inner = event.extra; typeof inner === "object"; inner = inner.a?.[0]) levels += 1;
    assert.equal(levels, 20_000);
  }
});
