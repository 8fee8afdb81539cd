// No error shows a secret that a service echoes (5 rule 1), tested with the vectors that all three languages read.

import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";

import { Client } from "gatewright";

import { answerWith, serve } from "./support/server.mjs";
import { readVectors } from "./support/vectors.mjs";

const KEY = "gw-Canary/4+7f=x9";
const IN_HEADER = "canary-in-a-header";
const IN_QUERY = "canary-in-a-query";

const base64 = (text) => Buffer.from(text).toString("base64");
const each = (form) => [...KEY].map((letter) => form(letter.charCodeAt(0))).join("");
const hex = (code, digits) => code.toString(16).padStart(digits, "0");
const FORMS = {
  key: KEY,
  percent: each((code) => `%${hex(code, 2).toUpperCase()}`),
  json: each((code) => `\\u${hex(code, 4)}`),
  html: each((code) => `&#${code};`),
  hex: each((code) => hex(code, 2)),
  base64: base64(`Bearer ${KEY}`),
  upper: KEY.toUpperCase(),
  head: KEY.slice(0, 8),
  tail: KEY.slice(8),
  header: IN_HEADER,
  query: IN_QUERY,
};

function echoed(text) {
  return Object.entries(FORMS).reduce((text, [name, form]) => text.replaceAll(`{{${name}}}`, form), text);
}

/** Everything that an error shows: itself, its stack, each property, its causes. */
function shown(error) {
  const options = { depth: null, showHidden: true, maxStringLength: null, maxArrayLength: null };
  const headers = error.response?.headers ?? error.headers;
  const properties = JSON.stringify(error, Object.getOwnPropertyNames(error));
  return [
    inspect(error, options),
    `${error}`,
    error.stack,
    properties,
    inspect(headers && [...headers]),
  ].join("\n");
}

async function call(client, operation, stream) {
  const options = { extraHeaders: { "x-goog-api-key": IN_HEADER }, extraQuery: { key: IN_QUERY } };
  const params = { model: "m", messages: [], input: "hi", contents: [], ...(stream && { stream: true }) };
  const result = await {
    create_chat_completion: () => client.chat.completions.create(params, options),
    create_response: () => client.responses.create(params, options),
    stream_generate_content: () => client.native.streamGenerateContent(params, options),
  }[operation]();
  for await (const _ of result);
}

function percentDecoded(text) {
  return text.replaceAll(/%([0-9a-f]{2})/giu, (_, code) => String.fromCharCode(Number.parseInt(code, 16)));
}

test("vectors: secrets/echoes.json", async (t) => {
  for (const { name, operation, stream, response, error: expected } of readVectors("secrets/echoes.json")
    .cases) {
    await t.test(name, async (t) => {
      const headers = Object.entries(response.headers).map(([name, value]) => [name, echoed(value)]);
      const server = await serve(t, (_, socket) => {
        answerWith(socket, response.status, echoed(response.body), Object.fromEntries(headers));
      });
      const client = new Client({ baseUrl: server.url, apiKey: KEY, maxRetries: 0 });
      const error = await call(client, operation, stream).then(
        () => assert.fail("there is no error"),
        (error) => error,
      );
      assert.equal(error.kind, expected.kind, `${error}`);
      if (expected.message !== null) assert.ok(error.message.includes(expected.message), error.message);
      const text = shown(error);
      assert.ok(!percentDecoded(text).toLowerCase().includes("canary"), text);
      for (const form of [FORMS.hex, FORMS.base64, base64(KEY)]) assert.ok(!text.includes(form), text);
    });
  }
});
