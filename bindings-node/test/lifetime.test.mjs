// How processes and threads that use the client end: by themselves, promptly, and without an unhandled rejection.

import assert from "node:assert/strict";
import { once } from "node:events";
import { cpSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { Worker } from "node:worker_threads";

import { Client } from "gatewright";

import { enginePath, PACKAGE } from "./support/package.mjs";
import { notOnDeno, runModule } from "./support/process.mjs";
import { answerWith, beginEvents, chunk, closedByClient, sendEvents, serve } from "./support/server.mjs";

const PROMPT = { model: "model-sol", messages: [{ role: "user", content: "Hi" }] };
const STREAMED = { ...PROMPT, stream: true };

/** A server that starts every stream with one chunk and leaves it open. */
async function endless(t) {
  const server = await serve(t, (request, socket) => {
    if (!JSON.parse(request.body || "{}").stream) {
      answerWith(socket, 200, { object: "list", data: [] });
      return;
    }
    beginEvents(socket);
    sendEvents(socket, chunk("one"));
  });
  return server;
}

/** Runs a program against a server, and expects it to exit by itself, soon, having printed `expected`. */
async function endsWith(expected, source, server, environment = {}) {
  const { code, signal, output, durationMs } = await runModule(source, {
    GATEWRIGHT_BASE_URL: server.url,
    ...environment,
  });
  assert.deepEqual({ code, signal, output }, { code: 0, signal: null, output: expected });
  // Far below any timeout of the client: nothing waited.
  assert.ok(durationMs < 5000, `${durationMs} ms`);
}

test("a process with an open client and a half-read stream exits by itself", async (t) => {
  await endsWith(
    "one\n",
    `import { Client } from "gatewright";
     const client = new Client();
     const stream = await client.chat.completions.create(${JSON.stringify(STREAMED)});
     console.log((await stream.next()).value.choices[0].delta.content);`,
    await endless(t),
  );
});

test("a process with connections kept alive and callbacks exits by itself", async (t) => {
  await endsWith(
    "done\n",
    `import { Client } from "gatewright";
     const client = new Client({ apiKey: () => "sk-test", middleware: [{ before() {}, async after() {} }] });
     await Promise.all(Array.from({ length: 5 }, () => client.models.list()));
     console.log("done");`,
    await endless(t),
  );
});

test("a process whose only work is a call stays alive until the response", async (t) => {
  const server = await serve(t, (_, socket) => {
    setTimeout(() => answerWith(socket, 200, { object: "list", data: [{ id: "m" }] }), 200);
  });
  await endsWith(
    "m\n",
    `import { Client } from "gatewright";
     new Client({ middleware: [{ async before() { await null; } }] }).models.list()
       .then((models) => console.log(models.data[0].id));`,
    server,
  );
});

test("abandoned operations leave no unhandled rejection", async (t) => {
  const server = await serve(t, (request, socket) => {
    if (request.target.startsWith("/v1/models")) return;
    beginEvents(socket);
    sendEvents(socket, chunk("a"));
    // Makes open calls fail while nothing is listening.
    setTimeout(() => socket.destroy(), 100);
  });
  await endsWith(
    "done\n",
    `import { Client } from "gatewright";
     const client = new Client({ maxRetries: 0 });
     const prompt = ${JSON.stringify(STREAMED)};
     const open = (options) => client.chat.completions.create(prompt, options);
     const settled = (promise) => promise.then(() => {}, () => {});

     const controller = new AbortController();
     const aborted = await open({ signal: controller.signal });
     const abortedInRead = await open({ signal: controller.signal });
     const reading = settled(abortedInRead.next());
     const call = settled(client.models.list({ signal: controller.signal }));
     controller.abort();
     await Promise.all([reading, call]);

     const unread = await open();
     const halfRead = await open();
     await halfRead.next();
     const closed = await open();
     void closed.next();
     closed.close();
     for await (const _ of await open()) break;
     const [left, right] = (await open()).tee();
     await left.next();
     right.close();
     const [forgotten] = (await open()).tee();
     const readable = (await open()).toReadableStream();
     const cancelled = (await open()).toReadableStream();
     await cancelled.cancel();
     const frames = (await open()).rawEvents();
     await frames.next();
     (await open()).text();
     await new Promise((resolve) => setTimeout(resolve, 300));
     console.log("done");`,
    server,
  );
});

test("an ignored promise of a failed call is an unhandled rejection, like any other", async (t) => {
  const server = await serve(t, (_, socket) => answerWith(socket, 404, {}));
  const { code, output } = await runModule(
    `import { Client } from "gatewright";
     new Client({ maxRetries: 0 }).models.list();
     await new Promise((resolve) => setTimeout(resolve, 2000));`,
    { GATEWRIGHT_BASE_URL: server.url },
  );
  assert.notEqual(code, 0);
  assert.match(output, /NotFoundError/);
});

const READS = `
  const { parentPort, workerData } = require("node:worker_threads");
  const { Client } = require(workerData.package);
  (async () => {
    const client = new Client({ baseUrl: workerData.url, apiKey: "sk-test", middleware: [{ before() {}, after() {} }] });
    for (let turn = 0; turn < 20; turn += 1) await client.models.list();
    const stream = await client.chat.completions.create(workerData.prompt);
    for await (const chunk of stream) parentPort.postMessage(chunk.choices[0].delta.content);
  })();
`;

/** A worker that calls, then reads a stream; resolves once the first chunk has arrived. */
async function readingWorker(server) {
  const worker = new Worker(READS, {
    eval: true,
    workerData: { package: PACKAGE, url: server.url, prompt: STREAMED },
  });
  const failed = once(worker, "error").then(([error]) => Promise.reject(error));
  await Promise.race([once(worker, "message"), failed]);
  failed.catch(() => {});
  return worker;
}

test("clients in several workers and on the main thread work concurrently; one terminated mid-stream closes its connections", {
  skip: notOnDeno("it runs no clean-up of a terminated worker"),
}, async (t) => {
  const server = await serve(t, (request, socket) => {
    if (request.body === "") {
      answerWith(socket, 200, { object: "list", data: [] });
      return;
    }
    beginEvents(socket);
    const timer = setInterval(() => sendEvents(socket, chunk("more")), 2);
    socket.on("close", () => clearInterval(timer));
  });
  const client = new Client({ baseUrl: server.url, apiKey: "sk-test" });
  const stream = await client.chat.completions.create(STREAMED);
  for (let round = 0; round < 2; round += 1) {
    const workers = await Promise.all([1, 2, 3].map(() => readingWorker(server)));
    await stream.next();
    await Promise.all(workers.map((worker) => worker.terminate()));
  }
  // Only the main thread's connections remain: it continues undisturbed.
  assert.ok((await stream.next()).value);
  stream.close();
  const deadline = Date.now() + 3000;
  const streams = () => server.requests.filter(({ body }) => body !== "").length;
  assert.equal(streams(), 7);
  while (server.sockets.size > 1 && Date.now() < deadline) await pause(20);
  // The main thread has made no call that would keep a connection.
  assert.ok(server.sockets.size <= 1, `${server.sockets.size} connections are left`);
});

test("a worker that ends during a call affects nothing else", async (t) => {
  const server = await serve(t, (request, socket) => {
    if (request.headers["x-hang"] === undefined) answerWith(socket, 200, { object: "list", data: [] });
  });
  const source = `
    const { parentPort, workerData } = require("node:worker_threads");
    const { Client } = require(workerData.package);
    const client = new Client({ baseUrl: workerData.url, apiKey: "sk-test",
      middleware: [{ before: () => new Promise(() => parentPort.postMessage("called")) }] });
    client.models.list().catch(() => {});
    new Client({ baseUrl: workerData.url, apiKey: "sk-test" }).models.list({ extraHeaders: { "x-hang": "1" } }).catch(() => {});
  `;
  const worker = new Worker(source, { eval: true, workerData: { package: PACKAGE, url: server.url } });
  await once(worker, "message");
  while (server.requests.length < 1) await pause(10);
  const { socket } = server.requests[0];
  await worker.terminate();
  await closedByClient(socket, 3000);
  const client = new Client({ baseUrl: server.url, apiKey: "sk-test" });
  assert.deepEqual((await client.models.list()).data, []);
});

test("two copies of the package in one process do not disturb each other", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "gatewright-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, "copy"));
  for (const name of ["dist", "package.json"]) {
    cpSync(join(PACKAGE, name), join(folder, "copy", name), { recursive: true });
  }
  const engine = enginePath();
  cpSync(engine, join(folder, "copy", basename(engine)));
  await endsWith(
    "false one one\n",
    `import { createRequire } from "node:module";
     import * as first from "gatewright";
     const second = createRequire(import.meta.url)(${JSON.stringify(join(folder, "copy"))});
     const texts = await Promise.all([first, second].map(async ({ Client }) => {
       const stream = await new Client().chat.completions.create(${JSON.stringify(STREAMED)});
       const { value } = await stream.next();
       stream.close();
       return value.choices[0].delta.content;
     }));
     console.log(first.Client === second.Client, ...texts);`,
    await endless(t),
  );
});
