// Waiting for video tasks (2.7, 3), and saving images and videos (2.11, 4 rule 4).

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";

import {
  APIConnectionError,
  APIStatusError,
  APITimeoutError,
  CancelledError,
  Client,
  DecodeError,
  FileError,
  InvalidRequestError,
  responseOf,
  TaskFailedError,
} from "gatewright";

import { answerWith, closedByClient, serve } from "./support/server.mjs";

const PROGRAM =
  process.env.GATEWRIGHT_BIN ?? fileURLToPath(new URL("../../target/debug/gatewright", import.meta.url));

const CONTENTS = Buffer.from(Array.from({ length: 10240 }, (_, index) => index % 256));
const offline = new Client({ baseUrl: "http://127.0.0.1:9", apiKey: "sk-canary" });

const record = (status, more) => ({ id: "t1", status, created: 1, model: "m", ...more });
const FAILED = record("failed", { error: { message: "the prompt was refused" } });

/** A client of a server that answers polls in order, repeating the last response; null closes the connection. */
async function answering(t, ...answers) {
  const { url, requests, sockets } = await serve(t, (_, socket) => {
    const answer = answers.length > 1 ? answers.shift() : answers[0];
    if (answer === null) socket.destroy();
    else if (answer !== undefined) answerWith(socket, 200, answer);
  });
  const client = new Client({ baseUrl: url, apiKey: "key", maxRetries: 0 });
  return { generations: client.videos.generations, requests, sockets };
}

function folder(t) {
  const path = mkdtempSync(join(tmpdir(), "gatewright-"));
  t.after(() => rmSync(path, { recursive: true }));
  return path;
}

test("progress is reported at every poll, including the last", async (t) => {
  const { generations } = await answering(
    t,
    record("processing"),
    record("warming_up", { percent: 40 }),
    record("completed"),
  );
  const seen = [];
  const task = await generations.wait("t1", { intervalMs: 10, onProgress: (task) => seen.push(task) });
  assert.deepEqual(
    seen.map(({ status }) => status),
    ["processing", "warming_up", "completed"],
  );
  assert.equal(seen[1].percent, 40);
  assert.equal(task, seen[2]);
  assert.equal(responseOf(task).status, 200);
});

test("progress of a failing task is reported before the error is thrown, and promises are awaited", async (t) => {
  const { generations } = await answering(t, record("processing"), FAILED);
  const seen = [];
  const onProgress = async ({ status }) => {
    await new Promise(setImmediate);
    seen.push(status);
  };
  await assert.rejects(generations.wait("t1", { intervalMs: 10, onProgress }), (error) => {
    assert.ok(error instanceof TaskFailedError);
    assert.match(error.message, /the prompt was refused/);
    assert.equal(error.operation, "retrieve_video");
    assert.match(error.stack, /long-work\.test\.mjs/);
    return true;
  });
  assert.deepEqual(seen, ["processing", "failed"]);
});

test("an exception of onProgress ends the wait and reaches the caller", async (t) => {
  const { generations, requests } = await answering(t, record("processing"));
  const enough = new Error("enough");
  const thrown = () => {
    throw enough;
  };
  const rejected = () => Promise.reject(enough);
  for (const onProgress of [thrown, rejected]) {
    await assert.rejects(generations.wait("t1", { intervalMs: 10, onProgress }), (error) => error === enough);
  }
  assert.equal(requests.length, 2);
});

test("a wait continues through unknown states until the deadline", async (t) => {
  const { generations } = await answering(t, record("archived"));
  await assert.rejects(generations.wait("t1", { intervalMs: 20, timeoutMs: 200 }), (error) => {
    assert.ok(error instanceof APITimeoutError);
    assert.match(error.message, /t1 is not done after 200ms/);
    return true;
  });
});

test("a wait survives an outage, but not a gateway that never responded", async (t) => {
  const { generations } = await answering(t, record("processing"), null, null, null, record("completed"));
  assert.equal((await generations.wait("t1", { intervalMs: 10 })).status, "completed");
  const { generations: dead } = await answering(t, null);
  await assert.rejects(
    dead.wait("t1", { intervalMs: 10, timeoutMs: 5000 }),
    (error) => error instanceof APIConnectionError && !(error instanceof APITimeoutError),
  );
});

test("a lasting outage is a timeout that mentions it", async (t) => {
  const { generations } = await answering(t, record("processing"), null);
  await assert.rejects(generations.wait("t1", { intervalMs: 10, timeoutMs: 200 }), (error) => {
    assert.ok(error instanceof APITimeoutError);
    assert.match(error.message, /the last look-up failed: the connection broke/);
    assert.ok(error.cause instanceof Error);
    return true;
  });
});

test("aborting ends a wait immediately, in a poll, in a pause and in onProgress", async (t) => {
  const places = {
    "look-up": [undefined],
    pause: [record("processing")],
    onProgress: [record("processing")],
  };
  for (const [place, answers] of Object.entries(places)) {
    const { generations, sockets } = await answering(t, ...answers);
    const controller = new AbortController();
    const onProgress = place === "onProgress" ? () => controller.abort("enough") : undefined;
    const waiting = generations.wait("t1", { intervalMs: 30_000, signal: controller.signal, onProgress });
    const started = Date.now();
    if (onProgress === undefined) setTimeout(() => controller.abort("enough"), 150);
    await assert.rejects(waiting, (error) => error instanceof CancelledError && error.cause === "enough");
    // Long before the next poll, even on a busy machine.
    assert.ok(Date.now() - started < 10_000, place);
    if (place === "look-up") for (const socket of sockets) await closedByClient(socket);
  }
});

test("a misused wait is reported where it was called", async (t) => {
  const { generations } = await answering(t, record("processing"));
  await assert.rejects(generations.wait(undefined), TypeError);
  await assert.rejects(generations.wait("t1", { intervalMs: -1 }), { name: "ConfigurationError" });
});

// Saving.

/** A server of CONTENTS that breaks off after `breaks` bytes the first time, and supports ranges if requested. */
async function files(t, { breaks, ranges = true } = {}) {
  const server = await serve(t, ({ headers }, socket) => {
    const first = ranges ? Number(/^bytes=(\d+)-$/.exec(headers.range ?? "bytes=0-")[1]) : 0;
    const body = CONTENTS.subarray(first);
    const lines = [`HTTP/1.1 ${first > 0 ? 206 : 200} Status`, `content-length: ${body.length}`];
    if (ranges) lines.push('etag: "one"');
    if (first > 0) lines.push(`content-range: bytes ${first}-${CONTENTS.length - 1}/${CONTENTS.length}`);
    socket.write(`${lines.join("\r\n")}\r\n\r\n`);
    if (breaks !== undefined && server.requests.length === 1) socket.end(body.subarray(0, breaks));
    else socket.write(body);
  });
  return server;
}

test("images and videos from the gateway are saved", async (t) => {
  const gateway = spawn(PROGRAM, ["serve", "--json", "--listen", "127.0.0.1:0"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  t.after(() => gateway.kill());
  const { value } = await createInterface({ input: gateway.stdout })[Symbol.asyncIterator]().next();
  const { listening, key } = JSON.parse(value);
  const client = new Client({ baseUrl: listening, apiKey: key });
  const path = folder(t);
  for (const response_format of ["url", "b64_json"]) {
    const { data } = await client.images.generate({
      model: "image_model_2",
      prompt: "a kite",
      size: "256x256",
      response_format,
    });
    const place = join(path, `${response_format}.png`);
    const bytes = await client.images.save(data[0], response_format === "url" ? place : pathToFileURL(place));
    assert.equal(statSync(place).size, bytes);
    assert.equal(readFileSync(place).subarray(1, 4).toString(), "PNG");
  }
  const seen = [];
  const task = await client.videos.generations.createAndWait(
    { model: "video_model_1", prompt: "waves", duration: 3, resolution: "720p" },
    { intervalMs: 50, onProgress: ({ status }) => seen.push(status) },
  );
  assert.equal(seen.at(-1), "completed");
  const bytes = await client.videos.generations.save(task, join(path, "waves.mp4"));
  assert.equal(statSync(join(path, "waves.mp4")).size, bytes);
  assert.deepEqual(readdirSync(path).sort(), ["b64_json.png", "url.png", "waves.mp4"]);
  await assert.rejects(
    client.videos.generations.createAndWait(
      { model: "video_model_1", prompt: "waves [fail: out of paint]" },
      { intervalMs: 50 },
    ),
    /out of paint/,
  );
});

test("wrong options of a wait are errors before the task is submitted", async (t) => {
  const { url, requests } = await files(t);
  const client = new Client({ baseUrl: url, apiKey: "key", maxRetries: 0 });
  await assert.rejects(
    client.videos.generations.createAndWait(
      { model: "video_model_1", prompt: "waves" },
      { intervalMs: "soon" },
    ),
    /intervalMs/,
  );
  assert.equal(requests.length, 0);
});

test("unknown options of waits and saves are errors", async (t) => {
  const { url, requests } = await files(t);
  const client = new Client({ baseUrl: url, apiKey: "key", maxRetries: 0 });
  const { generations } = client.videos;
  await assert.rejects(generations.wait("v", { interval: 5 }), /wait: no option is called interval/);
  const image = { url: `${url}/a` };
  await assert.rejects(
    client.images.save(image, join(folder(t), "a"), { overwite: false }),
    /save: no option is called overwite.*overwrite/,
  );
  assert.equal(requests.length, 0);
});

test("a broken transfer resumes once, without the key", async (t) => {
  for (const ranges of [true, false]) {
    const { url, requests } = await files(t, { breaks: 1000, ranges });
    const place = join(folder(t), "a");
    assert.equal(await offline.images.save({ url: `${url}/a?sig=canary` }, place), CONTENTS.length);
    assert.deepEqual(readFileSync(place), CONTENTS);
    assert.equal(requests.length, 2);
    assert.equal(requests[1].headers["if-range"], ranges ? '"one"' : undefined);
    for (const { headers } of requests) assert.equal(headers.authorization, undefined);
  }
});

test("an existing file is replaced by default", async (t) => {
  const { url } = await files(t);
  const place = join(folder(t), "a");
  writeFileSync(place, "before");
  await assert.rejects(offline.images.save({ url }, place, { overwrite: false }), (error) => {
    assert.ok(error instanceof FileError);
    assert.match(error.message, /overwriting was not allowed/);
    return true;
  });
  assert.equal(readFileSync(place, "utf8"), "before");
  await offline.images.save({ url }, place);
  assert.deepEqual(readFileSync(place), CONTENTS);
});

test("an image's data takes precedence over its URL", async (t) => {
  const place = join(folder(t), "a");
  assert.equal(await offline.images.save({ url: "https://unused.example", b64_json: "aGk=" }, place), 2);
  assert.equal(readFileSync(place, "utf8"), "hi");
});

test("failures are reported with their cause and leave nothing behind", async (t) => {
  const { url } = await files(t);
  const path = folder(t);
  const place = join(path, "a");
  await assert.rejects(offline.images.save({ url }, join(path, "missing", "a.png")), (error) => {
    assert.ok(error instanceof FileError);
    assert.match(error.message, /missing\/a\.png: its folder does not exist/);
    assert.match(error.cause.message, /No such file or directory/);
    assert.match(error.stack, /long-work\.test\.mjs/);
    return true;
  });
  await assert.rejects(offline.images.save({ url }, path), FileError);
  await assert.rejects(offline.images.save({ url }, place, { maxBytes: 100 }), DecodeError);
  for (const maxBytes of [-1, 0.5, Number.NaN]) {
    await assert.rejects(offline.images.save({ url }, place, { maxBytes }), { name: "ConfigurationError" });
  }
  for (const b64_json of ["aGk", "aG k=", "aGk=aGk=", "data:image/png;base64,aGk="]) {
    await assert.rejects(offline.images.save({ b64_json }, place), DecodeError, b64_json);
  }
  await assert.rejects(offline.images.save({ revised_prompt: "x" }, place), InvalidRequestError);
  await assert.rejects(offline.images.save({ url: null, b64_json: null }, place), InvalidRequestError);
  for (const image of [{ b64_json: 1 }, { b64_json: "aGk=", url: [] }]) {
    await assert.rejects(offline.images.save(image, place), { message: /not an image of a response/ });
  }
  await assert.rejects(offline.videos.generations.save(record("processing"), place), InvalidRequestError);
  await assert.rejects(offline.images.save({ url }, undefined), TypeError);
  await assert.rejects(offline.images.save({ url }, new URL("http://h/a")), TypeError);
  const expired = await serve(t, (_, socket) =>
    answerWith(socket, 410, { error: { message: "it has expired" } }),
  );
  await assert.rejects(offline.images.save({ url: expired.url }, place), (error) => {
    assert.ok(error instanceof APIStatusError);
    assert.deepEqual([error.status, error.message], [410, "status 410: it has expired"]);
    return true;
  });
  assert.deepEqual(readdirSync(path), []);
});

test("aborting or timing out ends a transfer immediately and leaves nothing behind", async (t) => {
  const { url, sockets } = await serve(t, (_, socket) => {
    socket.write("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nsome of it");
  });
  const path = folder(t);
  const started = Date.now();
  const signal = AbortSignal.timeout(150);
  await assert.rejects(
    offline.images.save({ url }, join(path, "a"), { signal }),
    (error) => error instanceof CancelledError && error.cause === signal.reason,
  );
  await assert.rejects(offline.images.save({ url }, join(path, "a"), { timeoutMs: 150 }), APITimeoutError);
  assert.ok(Date.now() - started < 700);
  for (const socket of sockets) await closedByClient(socket);
  assert.deepEqual(readdirSync(path), []);
  await assert.rejects(offline.images.save({ url }, join(path, "a"), { signal }), CancelledError);
});
