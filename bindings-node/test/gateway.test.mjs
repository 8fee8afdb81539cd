// Every operation against the real gateway, and the examples as a reader would run them.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import {
  AuthenticationError,
  BadRequestError,
  CancelledError,
  Client,
  InvalidRequestError,
  NotFoundError,
  responseOf,
} from "gatewright";

import { notOnDeno } from "./support/process.mjs";
import { promptly } from "./support/timing.mjs";

const REPOSITORY = fileURLToPath(new URL("../..", import.meta.url));
const PROGRAM = process.env.GATEWRIGHT_BIN ?? join(REPOSITORY, "target/debug/gatewright");
const EXAMPLES = join(REPOSITORY, "examples/node");

let gateway;
let client;
let environment;
let folder;

before(async () => {
  assert.ok(existsSync(PROGRAM), `${PROGRAM} is missing: build it, or name it in GATEWRIGHT_BIN`);
  folder = mkdtempSync(join(tmpdir(), "gatewright-"));
  gateway = spawn(PROGRAM, ["serve", "--json", "--listen", "127.0.0.1:0"], {
    cwd: folder,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const lines = createInterface({ input: gateway.stdout })[Symbol.asyncIterator]();
  const { value } = await lines.next();
  const { listening, key } = JSON.parse(value);
  client = new Client({ baseUrl: listening, apiKey: key });
  environment = { ...process.env, GATEWRIGHT_BASE_URL: listening, GATEWRIGHT_API_KEY: key };
});

after(() => {
  gateway?.kill();
  rmSync(folder, { recursive: true, force: true });
});

const question = (content) => [{ role: "user", content }];

test("models are listed in both styles (4)", async () => {
  const models = await client.models.list();
  assert.ok(models.data.some((model) => model.id === "model-sol"));
  const { models: native } = await client.native.models.list({ pageSize: 2 });
  assert.equal(native.length, 2);
});

test("models are retrieved by their listed names (4)", async () => {
  const [listed] = (await client.models.list()).data;
  assert.deepEqual(await client.models.retrieve(listed.id), listed);
  const [native] = (await client.native.models.list()).models;
  assert.match(native.name, /^models\//);
  assert.deepEqual(await client.native.models.get(native.name), native);
  const contents = [{ parts: [{ text: "Reply with exactly: by name" }] }];
  const { candidates } = await client.native.generateContent({ model: native.name, contents });
  assert.equal(candidates[0].content.parts[0].text, "by name");
  await assert.rejects(client.models.retrieve("another/model"), NotFoundError);
  await assert.rejects(client.models.retrieve("../admin"), InvalidRequestError);
});

test("a chat completion arrives whole or in chunks, with the same text (2.2, 2.3)", async () => {
  const request = { model: "model-sol", messages: question("Reply with exactly: good morning") };
  const completion = await client.chat.completions.create(request);
  assert.equal(completion.object, "chat.completion");
  assert.equal(completion.choices[0].message.content, "good morning");
  assert.equal(responseOf(completion).status, 200);
  let text = "";
  for await (const chunk of await client.chat.completions.create({ ...request, stream: true })) {
    text += chunk.choices[0]?.delta.content ?? "";
  }
  assert.equal(text, "good morning");
});

test("a response arrives whole, in named events, and compacted (2.4)", async () => {
  const request = { model: "model-sol", input: "Reply with exactly: a response" };
  const response = await client.responses.create(request);
  assert.equal(response.output.find((item) => item.type === "message").content[0].text, "a response");
  const names = [];
  let text = "";
  for await (const event of await client.responses.create({ ...request, stream: true })) {
    names.push(event.type);
    if (event.type === "response.output_text.delta") text += event.delta;
  }
  assert.equal(names[0], "response.created");
  assert.equal(names.at(-1), "response.completed");
  assert.equal(text, "a response");
  const compacted = await client.responses.compact({ model: "model-sol", input: "A long story." });
  assert.ok(Array.isArray(compacted.output));
});

test("native content arrives whole and in parts, and tokens are counted (2.5)", async () => {
  const request = {
    model: "model-sol",
    contents: [{ parts: [{ text: "Reply with exactly: native content" }] }],
  };
  const textOf = (content) =>
    content.candidates?.[0]?.content?.parts?.map((part) => part.text).join("") ?? "";
  assert.equal(textOf(await client.native.generateContent(request)), "native content");
  let text = "";
  for await (const part of await client.native.streamGenerateContent(request)) text += textOf(part);
  assert.equal(text, "native content");
  const { totalTokens } = await client.native.countTokens(request);
  assert.ok(totalTokens > 0);
});

test("documents are ranked, and content is moderated", async () => {
  const documents = ["Interest rates of banks", { text: "Boats on the lake", id: 7 }];
  const request = {
    model: "rerank_model_1",
    query: "boats on a lake",
    documents,
    top_n: 1,
    return_documents: true,
  };
  const { results, usage } = await client.rerank.create(request);
  assert.deepEqual(
    results.map(({ index, document }) => [index, document.text]),
    [[1, "Boats on the lake"]],
  );
  assert.ok(usage.total_tokens > 0);
  const judged = await client.moderations.create({ input: ["a boat", "punch"] });
  assert.deepEqual(
    judged.results.map(({ flagged }) => flagged),
    [false, true],
  );
  assert.equal(judged.model, "moderation_model_1");
  assert.ok(judged.results[1].category_scores.violence > judged.results[0].category_scores.violence);
});

test("texts are read aloud", async () => {
  const request = { model: "speech_model_1", input: "a boat", voice: "alloy" };
  const spoken = await client.audio.speech.create(request);
  assert.ok(spoken instanceof Uint8Array);
  assert.equal(Buffer.from(spoken.subarray(0, 4)).toString(), "RIFF");
  const samples = await client.audio.speech.create({ ...request, response_format: "pcm" });
  assert.deepEqual(samples, spoken.subarray(44));
  await assert.rejects(client.audio.speech.create({ ...request, response_format: "mp3" }), /use wav or pcm/);
});

test("sounds are transcribed", async () => {
  const data = await client.audio.speech.create({
    model: "speech_model_1",
    input: "a boat",
    voice: "alloy",
  });
  const request = { model: "transcription_model_1", file: { name: "boat.wav", data } };
  const found = await client.audio.transcriptions.create({
    ...request,
    response_format: "verbose_json",
    timestamp_granularities: ["word"],
  });
  assert.equal(found.duration, 0.12);
  assert.equal(found.words.map(({ word }) => word).join(" "), found.text);
  assert.ok(found.usage.output_tokens > 0);
  const translated = await client.audio.translations.create(request);
  assert.equal(translated.text, found.text);
});

test("speech arrives as events", async () => {
  const request = { model: "speech_model_1", input: "a boat", voice: "alloy" };
  const events = [];
  for await (const event of await client.audio.speech.create({ ...request, stream_format: "sse" })) {
    events.push(event);
  }
  assert.equal(events.pop().type, "speech.audio.done");
  const sound = Buffer.concat(events.map(({ audio }) => Buffer.from(audio, "base64")));
  assert.deepEqual(sound, Buffer.from(await client.audio.speech.create(request)));
});

test("transcripts arrive as events and as text", async () => {
  const file = { name: "boat.wav", data: Buffer.from("RIFF") };
  const request = { model: "transcription_model_1", file };
  const { text } = await client.audio.transcriptions.create(request);
  const events = [];
  for await (const event of await client.audio.transcriptions.create({ ...request, stream: true })) {
    events.push(event);
  }
  assert.equal(events.pop().text, text);
  assert.equal(events.map(({ delta }) => delta).join(""), text);
  for (const form of [client.audio.transcriptions, client.audio.translations]) {
    assert.equal(await form.create({ ...request, response_format: "text" }), `${text}\n`);
    assert.match(await form.create({ ...request, response_format: "vtt" }), /^WEBVTT\n/);
  }
  await assert.rejects(
    client.audio.transcriptions.create(request, { extraBody: { response_format: "srt" } }),
    /give response_format to/,
  );
});

test("a batch has a result for each request", async () => {
  const lines = ["one", "two"].map((custom_id) =>
    JSON.stringify({
      custom_id,
      method: "POST",
      url: "/v1/chat/completions",
      body: { model: "model-sol", messages: [{ role: "user", content: "Say hi" }] },
    }),
  );
  const data = Buffer.from(lines.join("\n"));
  const file = await client.files.create({ file: { name: "requests.jsonl", data }, purpose: "batch" });
  assert.deepEqual([file.filename, file.bytes], ["requests.jsonl", data.length]);
  assert.deepEqual(Buffer.from(await client.files.content(file.id)), data);
  let batch = await client.batches.create({
    input_file_id: file.id,
    endpoint: "/v1/chat/completions",
    completion_window: "24h",
  });
  for (let polls = 0; batch.status === "in_progress" && polls < 1_000; polls += 1) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    batch = await client.batches.retrieve(batch.id);
  }
  assert.deepEqual([batch.status, batch.request_counts.completed], ["completed", 2]);
  const results = Buffer.from(await client.files.content(batch.output_file_id))
    .toString()
    .trim()
    .split("\n");
  assert.deepEqual(
    results.map((line) => JSON.parse(line).custom_id),
    ["one", "two"],
  );
  const page = await client.files.list({ limit: 1, purpose: "batch_output" });
  assert.equal(page.data[0].id, batch.output_file_id);
  assert.ok((await client.batches.list()).data.some(({ id }) => id === batch.id));
  assert.ok((await client.files.delete(file.id)).deleted);
  await assert.rejects(client.files.retrieve(file.id), { status: 404 });
  const broken = { name: "x", data: Buffer.from("requests") };
  await assert.rejects(
    client.files.create({ file: broken, purpose: "batch" }),
    /line 1 is not one JSON object/,
  );
});

test("embeddings are numbers, or base64 text on request", async () => {
  const request = { model: "embedding_model_1", input: ["a boat", "a lake"], dimensions: 3 };
  const { data, usage } = await client.embeddings.create(request);
  assert.deepEqual(
    data.map(({ index, embedding }) => [index, embedding.length]),
    [
      [0, 3],
      [1, 3],
    ],
  );
  assert.ok(usage.prompt_tokens > 0 && usage.total_tokens === usage.prompt_tokens);
  const encoded = await client.embeddings.create({ ...request, input: "a boat", encoding_format: "base64" });
  const bytes = Buffer.from(encoded.data[0].embedding, "base64");
  for (const [place, number] of data[0].embedding.entries()) {
    assert.ok(Math.abs(bytes.readFloatLE(4 * place) - number) < 1e-6);
  }
  for (const input of [[1, 2, 3], [[1, 2, 3]]]) {
    assert.equal((await client.embeddings.create({ ...request, input })).data.length, 1);
  }
});

test("an image is a PNG of the requested size (2.8, 2.11)", async () => {
  const { data } = await client.images.generate({
    model: "image_model_2",
    prompt: "a lighthouse",
    size: "256x256",
    response_format: "b64_json",
  });
  const png = Buffer.from(data[0].b64_json, "base64");
  assert.equal(png.toString("latin1", 1, 4), "PNG");
  assert.deepEqual([png.readUInt32BE(16), png.readUInt32BE(20)], [256, 256]);
});

test("a video is awaited and can be fetched (3)", async () => {
  const task = await client.videos.generations.createAndWait(
    { model: "video_model_4", prompt: "waves", duration: 3, resolution: "720p" },
    { intervalMs: 50, timeoutMs: 60_000 },
  );
  assert.equal(task.status, "completed");
  assert.equal((await fetch(task.output.url)).status, 200);
  const again = await client.videos.generations.retrieve(task.id);
  // Every poll signs the file's URL again, valid for an hour from then.
  assert.equal(again.output.url.split("?")[0], task.output.url.split("?")[0]);
  assert.deepEqual({ ...again, output: { ...again.output, url: task.output.url } }, task);
});

test("an aborted call is canceled, even if its response has just arrived", async () => {
  const controller = new AbortController();
  const call = client.models.list({ signal: controller.signal });
  // The response arrives while this thread is busy: nothing has read it yet.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500);
  controller.abort(new Error("enough"));
  await assert.rejects(call, (error) => error instanceof CancelledError && error.cause.message === "enough");
});

test("waiting for a video stops at its signal", async () => {
  const task = await client.videos.generations.create({ model: "video_model_1", prompt: "waves" });
  await promptly(100, async () => {
    const controller = new AbortController();
    const waiting = client.videos.generations.wait(task.id, { signal: controller.signal });
    const failed = assert.rejects(waiting, CancelledError);
    await pause(50);
    const aborted = performance.now();
    controller.abort();
    await failed;
    return performance.now() - aborted;
  });
});

test("a rejection by the gateway is an error of its kind (7)", async () => {
  const messages = question("Hi");
  await assert.rejects(client.chat.completions.create({ model: "no-such-model", messages }), NotFoundError);
  const stranger = new Client({ baseUrl: client.baseUrl, apiKey: "sk-wrong" });
  await assert.rejects(stranger.models.list(), AuthenticationError);
  const error = await client.chat.completions
    .create({ model: "model-sol", messages, temperature: 3, frequency_penalty: -9 })
    .then(assert.fail, (error) => error);
  assert.ok(error instanceof BadRequestError);
  const pointers = error.body.error.violations.map(({ pointer }) => pointer).sort();
  assert.deepEqual(pointers, ["/frequency_penalty", "/temperature"], "all violations at once");
});

const run = promisify(execFile);

for (const [name, expected] of Object.entries({
  "chat.mjs": /tokens, request/,
  "stream.mjs": /\S/,
  "structured.mjs": /has more than -?\d+ inhabitants/,
  "responses.mjs": /compacted to \d+ items/,
  "native.mjs": /tokens of input/,
  "image.mjs": /bytes/,
  "video.mjs": /mp4/,
  "report_validate.mjs": /good\.json: valid\n.*broken\.json: invalid\n/s,
  "commonjs.cjs": /model-sol/,
})) {
  test(`example: ${name}`, async () => {
    const file = { "image.mjs": join(folder, "image.png"), "video.mjs": join(folder, "video.mp4") }[name];
    const { stdout } = await run(process.execPath, [join(EXAMPLES, name), ...(file ? [file] : [])], {
      env: environment,
    });
    assert.match(stdout, expected);
    if (file) assert.ok(readFileSync(file).length > 0);
  });
}

test("example: typed.ts, compiled", async () => {
  const tsc = fileURLToPath(new URL("../node_modules/typescript/bin/tsc", import.meta.url));
  await run(process.execPath, [tsc, "--project", EXAMPLES]);
  const { stdout } = await run(process.execPath, [join(EXAMPLES, "build/typed.js")], { env: environment });
  assert.match(stdout, /NotFoundError 404 model_not_found/);
});

test("the ten-line example of the README runs", {
  skip: notOnDeno("it runs no module of a command line"),
}, async () => {
  const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");
  const [, source] = /```js\n(.*?)```/s.exec(readme);
  const { stdout } = await run(process.execPath, ["--input-type=module", "--eval", source], {
    cwd: fileURLToPath(new URL(".", import.meta.url)),
    env: environment,
  });
  assert.ok(stdout.split("\n").length >= 2, stdout);
});
