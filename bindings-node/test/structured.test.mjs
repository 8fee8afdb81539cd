// Structured output: schemas in, values out.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Client, GatewrightError, responseOf, StructuredOutputError } from "gatewright";
import { z } from "zod";

import { startGateway } from "./support/gateway.mjs";
import { answerWith, beginEvents, chunk, sendEvents, serve } from "./support/server.mjs";
import { readVectors } from "./support/vectors.mjs";

const City = z
  .object({
    name: z.string(),
    population: z.number().int(),
    districts: z.array(z.object({ name: z.string() })),
  })
  .meta({ title: "City" });
const QUESTION = { model: "model-sol", messages: [{ role: "user", content: "A city of Norway?" }] };
const INPUT = { model: "model-sol", input: "A city of Norway?" };

const ends = [];
let gateway;
before(async () => {
  gateway = new Client(await startGateway({ after: (end) => ends.push(end) }));
});
after(() => {
  for (const end of ends) end();
});

/** A client of a server that gives this answer, and the server. */
async function answering(t, answer) {
  const server = await serve(t, (_, socket) => answerWith(socket, 200, answer));
  return { server, client: new Client({ baseUrl: server.url, apiKey: "sk-test", maxRetries: 0 }) };
}

/** A schema of another package that says this of itself. */
function standard(schema, vendor = "test") {
  const jsonSchema = schema && { input: () => ({ $schema: "x", ...schema }), output: () => schema };
  return { "~standard": { version: 1, vendor, validate: (value) => ({ value }), jsonSchema } };
}

const completion = (content) => ({
  id: "c",
  object: "chat.completion",
  created: 1,
  model: "m",
  choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }],
});

test("vectors: structured/schemas.json", async (t) => {
  const { server, client } = await answering(t, completion("{}"));
  for (const { name, schema, strict, refused } of readVectors("structured/schemas.json").cases) {
    const parsing = client.chat.completions.parse({ ...QUESTION, response_format: schema });
    if (refused) {
      await assert.rejects(parsing, TypeError, name);
      continue;
    }
    await parsing;
    const format = { name: "answer", schema: strict, strict: true };
    const sent = JSON.parse(server.requests.at(-1).body).response_format;
    assert.deepEqual(sent, { type: "json_schema", json_schema: format }, name);
  }
});

test("vectors: structured/names.json", async (t) => {
  const { server, client } = await answering(t, completion("{}"));
  for (const { name, type, format } of readVectors("structured/names.json").cases) {
    const schema = standard({ type: "object", ...(type !== null && { title: type }) });
    await client.chat.completions.parse({ ...QUESTION, response_format: schema });
    const { json_schema: sent } = JSON.parse(server.requests.at(-1).body).response_format;
    assert.equal(sent.name, format, name);
    assert.ok(!("$schema" in sent.schema));
  }
});

/** Of each operation: its `parse`, and where the answer has its value. */
const PARSING = {
  create_chat_completion: ({ chat }) => [
    () => chat.completions.parse({ ...QUESTION, response_format: City }),
    ({ choices }) => choices[0].message.parsed,
  ],
  create_response: ({ responses }) => [
    () => responses.parse({ ...INPUT, text: { format: City } }),
    ({ output_parsed }) => output_parsed,
  ],
  create_message: ({ messages }) => [
    () => messages.parse({ ...QUESTION, max_tokens: 9, output_config: { format: City } }),
    ({ parsed_output }) => parsed_output,
  ],
  generate_content: ({ native }) => [
    () => native.parse({ model: "m", contents: [], generationConfig: { responseJsonSchema: City } }),
    ({ parsed }) => parsed,
  ],
};

test("vectors: structured/answers.json", async (t) => {
  for (const vector of readVectors("structured/answers.json").cases) {
    const { operation, answer, error: expected } = vector;
    const { client } = await answering(t, answer);
    const [parse, value] = PARSING[operation](client);
    const isChat = operation === "create_chat_completion";
    if (expected !== undefined) {
      const error = await parse().then(assert.fail, (error) => error);
      assert.ok(error instanceof StructuredOutputError && error instanceof GatewrightError, vector.name);
      assert.equal(error.code, expected.code, vector.name);
      // A language may find the place within the value.
      assert.equal(error.param === undefined, expected.path === undefined, vector.name);
      assert.ok((error.param ?? "").startsWith(expected.path ?? ""), `${vector.name}: ${error.param}`);
      if (expected.path) assert.ok(error.message.includes(`: ${expected.path}`), error.message);
      if (expected.reason) assert.ok(error.message.includes(`(reason: ${expected.reason})`), error.message);
      if (expected.shows) assert.ok(error.message.includes(expected.shows), error.message);
      if (expected.hides) assert.ok(!error.message.includes(expected.hides), error.message);
      assert.deepEqual(error.answer, answer);
      assert.equal(isChat ? error.completion : error.response, error.answer);
      assert.equal(error.requestId, "req_test");
      assert.match(error.stack, /structured\.test\.mjs/);
      continue;
    }
    const found = await parse();
    assert.deepEqual(found, answer, "the answer is as it arrived");
    assert.equal(responseOf(found).requestId, "req_test");
    assert.deepEqual(value(found), vector.parsed, vector.name);
    const { refusal = null } = isChat ? found.choices[0].message : found;
    assert.equal(refusal, vector.refusal ?? null, vector.name);
  }
});

test("messages and native take the format beside other members", async (t) => {
  const text = '{"name": "a"}';
  const schema = { type: "object", properties: { name: { type: "string" } } };
  const strict = { ...schema, required: ["name"], additionalProperties: false };

  const messages = await answering(t, { content: [{ type: "text", text }], stop_reason: "end_turn" });
  const question = { ...QUESTION, max_tokens: 9 };
  const message = await messages.client.messages.parse({
    ...question,
    output_config: { effort: "low", format: schema },
  });
  assert.deepEqual(message.parsed_output, { name: "a" });
  const sent = ({ server }) => JSON.parse(server.requests.at(-1).body);
  const format = { type: "json_schema", schema: strict };
  assert.deepEqual(sent(messages).output_config, { effort: "low", format });

  const native = await answering(t, { candidates: [{ content: { parts: [{ text }] } }] });
  const parse = (responseJsonSchema) =>
    native.client.native.parse({
      model: "m",
      contents: [],
      generationConfig: { temperature: 1, responseJsonSchema },
    });
  assert.deepEqual((await parse(schema)).parsed, { name: "a" });
  const responseMimeType = "application/json";
  assert.deepEqual(sent(native).generationConfig, {
    temperature: 1,
    responseMimeType,
    responseJsonSchema: strict,
  });
  await assert.rejects(parse({ type: "json_object" }), /native\.parse: responseJsonSchema must be a schema/);
  await assert.rejects(
    messages.client.messages.parse({ ...question, output_config: { format: schema }, stream: true }),
    /messages\.parse: the answer is parsed as a whole/,
  );

  const answered = await gateway.messages.parse({
    ...question,
    model: "model-breeze",
    max_tokens: 256,
    output_config: { format: City },
  });
  assert.equal(typeof answered.parsed_output.name, "string");
  const content = await gateway.native.parse({
    model: "model-terra",
    contents: [{ parts: [{ text: "A city." }] }],
    generationConfig: { responseJsonSchema: City },
  });
  assert.equal(typeof content.parsed.name, "string");
});

test("a gateway answers with values of a schema, in chat and responses", async () => {
  const { choices } = await gateway.chat.completions.parse({ ...QUESTION, response_format: City });
  assert.ok(City.safeParse(choices[0].message.parsed).success);
  const response = await gateway.responses.parse({ ...INPUT, text: { format: City } });
  assert.ok(City.safeParse(response.output_parsed).success);
  const { data, response: metadata } = await gateway.responses
    .parse({ ...INPUT, text: { format: { type: "object", properties: { n: { type: "integer" } } } } })
    .withResponse();
  assert.equal(typeof data.output_parsed.n, "number");
  assert.equal(metadata.status, 200);
});

test("a schema transforms the value, also later", async (t) => {
  const { client } = await answering(t, completion('{"name": " Oslo "}'));
  const Trimmed = z.object({ name: z.string().transform((name) => name.trim()) });
  const Later = z.object({ name: z.string().refine(async (name) => name.length > 2) });
  const value = async (response_format) =>
    (await client.chat.completions.parse({ ...QUESTION, response_format })).choices[0].message.parsed;
  assert.deepEqual(await value(Trimmed), { name: "Oslo" });
  assert.deepEqual(await value(Later), { name: " Oslo " });
});

test("a message with a value goes back into the conversation as it arrived", async (t) => {
  const { server, client } = await answering(t, completion('{"a": 1}'));
  const ask = (messages) =>
    client.chat.completions.parse({ ...QUESTION, messages, response_format: { type: "object" } });
  const { message } = (await ask(QUESTION.messages)).choices[0];
  assert.deepEqual(message.parsed, { a: 1 });
  await ask([...QUESTION.messages, message, { role: "user", content: "And now?" }]);
  assert.deepEqual(JSON.parse(server.requests[1].body).messages[1], {
    role: "assistant",
    content: '{"a": 1}',
  });
});

test("create sends a schema, and leaves the answer and other formats alone", async (t) => {
  const { server, client } = await answering(t, completion("{}"));
  const sent = () => JSON.parse(server.requests.at(-1).body);
  const plain = await client.chat.completions.create({ ...QUESTION, response_format: City });
  assert.equal(plain.choices[0].message.parsed, undefined);
  assert.equal(sent().response_format.json_schema.name, "City");
  assert.deepEqual(sent().response_format.json_schema.schema.required, ["name", "population", "districts"]);
  const response_format = { type: "json_object" };
  await client.chat.completions.create({ ...QUESTION, response_format });
  assert.deepEqual(sent().response_format, response_format);
  await client.chat.completions.parse({ ...QUESTION, response_format });
  assert.deepEqual(sent().response_format, response_format);
  await client.responses.create({ ...INPUT, text: { format: City, verbosity: "low" } });
  assert.equal(sent().text.format.name, "City");
  assert.equal(sent().text.verbosity, "low");
});

test("create streams with a schema, too", async (t) => {
  const server = await serve(t, (_, socket) => {
    beginEvents(socket);
    sendEvents(socket, chunk("{}", "stop"), "[DONE]");
    socket.end();
  });
  const client = new Client({ baseUrl: server.url, apiKey: "sk-test" });
  const params = { ...QUESTION, response_format: City, stream: true };
  const stream = await client.chat.completions.create(params);
  assert.equal((await stream.finalChatCompletion()).choices[0].message.content, "{}");
  await assert.rejects(
    client.chat.completions.parse(params),
    /parse: the answer is parsed as a whole; leave out stream/,
  );
});

test("what is no schema, or cannot tell its JSON Schema, is refused with what to do", async (t) => {
  const { server, client } = await answering(t, completion("{}"));
  const parse = (response_format) => client.chat.completions.parse({ ...QUESTION, response_format });
  await assert.rejects(
    parse(standard(undefined, "zod")),
    /update zod to 4\.2 or later, or give a JSON Schema/,
  );
  await assert.rejects(parse(undefined), /undefined is no schema: give one of zod, or a JSON Schema/);
  await assert.rejects(parse("City"), TypeError);
  let endless = { type: "string" };
  for (let level = 0; level < 70; level += 1) endless = { type: "array", items: endless };
  await assert.rejects(parse(endless), /nests deeper than 64 levels/);
  assert.equal(server.requests.length, 0);
});

test("names from an answer are not taken for members of JavaScript's objects", async (t) => {
  const { client } = await answering(t, completion('{"__proto__": {"a": 1}}'));
  const schema = { type: "object", properties: JSON.parse('{"__proto__": {"type": "object"}}') };
  const { choices } = await client.chat.completions.parse({ ...QUESTION, response_format: schema });
  assert.equal(choices[0].message.parsed.a, undefined);
});
