// Servers that break HTTP, or exploit it: each ends as an answer or as an error of its call, and the next call is served
// (3). The vectors are those that all three languages read.

import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { createServer as createTlsServer } from "node:tls";

import { APIError, Client } from "gatewright";
import { generate } from "selfsigned";

import { readVectors } from "./support/vectors.mjs";

const FRAMES = [
  "DATA",
  "HEADERS",
  "PRIORITY",
  "RST_STREAM",
  "SETTINGS",
  "PUSH_PROMISE",
  "PING",
  "GOAWAY",
  "WINDOW_UPDATE",
  "CONTINUATION",
];
const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
const COMPLETION = JSON.stringify({ id: "c1", object: "chat.completion", choices: [] });
const HTTP1_ANSWER = [
  { text: `HTTP/1.1 200 OK\r\ncontent-length: ${COMPLETION.length}\r\n\r\n` },
  { text: COMPLETION },
];
const HTTP2_ANSWER = [
  { type: "HEADERS", flags: 4, on: "request", hex: "88" },
  { type: "DATA", flags: 1, on: "request", text: COMPLETION },
];
/** How much is sent at once, in bytes. */
const BLOCK = 64 * 1024;
/** How long a call may take, in milliseconds: where it is to take that long, and elsewhere. */
const [SHORT_MS, LONG_MS] = [1500, 60_000];

let folder;
let certificate;
let caBundle;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "gatewright-"));
  const authority = await generate([{ name: "commonName", value: "Test Authority" }], {
    keyType: "ec",
    algorithm: "sha256",
    extensions: [
      { name: "basicConstraints", cA: true, critical: true },
      { name: "keyUsage", keyCertSign: true, cRLSign: true, critical: true },
    ],
  });
  const { cert, private: key } = await generate([{ name: "commonName", value: "localhost" }], {
    keyType: "ec",
    algorithm: "sha256",
    ca: { key: authority.private, cert: authority.cert },
    extensions: [
      { name: "basicConstraints", cA: false },
      { name: "extKeyUsage", serverAuth: true },
      { name: "subjectAltName", altNames: [{ type: 2, value: "localhost" }] },
    ],
  });
  certificate = { cert, key };
  caBundle = join(folder, "ca.pem");
  writeFileSync(caBundle, authority.cert);
});

after(() => rmSync(folder, { recursive: true, force: true }));

/** The bytes of a piece: a frame of HTTP/2 (RFC 9113, section 4.1) if it has a type. */
function encoded(piece, request) {
  const text = (piece.text ?? "")
    .replaceAll("{{completion}}", COMPLETION)
    .replaceAll("{{completion_chunk}}", `${COMPLETION.length.toString(16)}\r\n${COMPLETION}\r\n`);
  const part = Buffer.concat([Buffer.from(piece.hex ?? "", "hex"), Buffer.from(text)]);
  const parts = new Array(piece.repeat ?? 1).fill(part);
  const payload = Buffer.concat([...parts, Buffer.from(piece.then ?? "", "hex")]);
  if (piece.type === undefined) return payload;
  const head = Buffer.alloc(9);
  head.writeUIntBE(piece.length ?? payload.length, 0, 3);
  head.writeUInt8(typeof piece.type === "string" ? FRAMES.indexOf(piece.type) : piece.type, 3);
  head.writeUInt8(piece.flags ?? 0, 4);
  head.writeUInt32BE(piece.on === "request" ? request : (piece.on ?? 0), 5);
  return Buffer.concat([head, payload]);
}

/** Resolves when a socket takes more bytes, or is closed. */
function drained(socket) {
  return new Promise((resolve) => {
    const done = () => {
      for (const event of ["drain", "close"]) socket.off(event, done);
      resolve();
    };
    for (const event of ["drain", "close"]) socket.on(event, done);
  });
}

async function send(socket, pieces, request) {
  for (const piece of pieces) {
    const bytes = encoded(piece, request);
    const together = Math.max(1, Math.floor(BLOCK / Math.max(1, bytes.length)));
    // 0 times: without end.
    let left = piece.times === 0 ? Number.POSITIVE_INFINITY : (piece.times ?? 1);
    while (left > 0 && !socket.destroyed) {
      const count = Math.min(left, together);
      const block = count === 1 ? bytes : Buffer.concat(new Array(count).fill(bytes));
      if (!socket.write(block) && !socket.destroyed) await drained(socket);
      left -= count;
    }
  }
}

/** Calls `onRequest` for each request of HTTP/1.1. */
function readHttp1(socket, onRequest) {
  let received = "";
  socket.on("data", (data) => {
    received += data.toString("latin1");
    const end = received.indexOf("\r\n\r\n");
    if (end === -1) return;
    const length = Number(/content-length: *(\d+)/iu.exec(received)?.[1] ?? 0);
    if (received.length < end + 4 + length) return;
    received = "";
    onRequest(0);
  });
}

/** Calls `onRequest` with the stream of each complete request of HTTP/2. */
function readHttp2(socket, onRequest) {
  let received = Buffer.alloc(0);
  let skipped = PREFACE.length;
  socket.on("data", (data) => {
    received = Buffer.concat([received, data]);
    while (received.length >= skipped + 9) {
      const end = skipped + 9 + received.readUIntBE(skipped, 3);
      if (received.length < end) return;
      const [kind, flags] = received.subarray(skipped + 3);
      if (kind <= 1 && flags & 1) onRequest(received.readUInt32BE(skipped + 5));
      received = received.subarray(end);
      skipped = 0;
    }
  });
}

/** Starts a server, whose first connection does what a case says; further ones answer. Returns its URL. */
async function serve(t, case_, protocol) {
  const sockets = new Set();
  const isHttp2 = protocol === "http2";
  const answer = isHttp2 ? HTTP2_ANSWER : HTTP1_ANSWER;
  const settings = isHttp2 ? [{ type: "SETTINGS" }] : [];
  let connections = 0;
  const accept = (socket) => {
    let isHostile = connections++ === 0;
    sockets.add(socket);
    // The client may end the connection at any time, and does so in most cases.
    socket.on("error", () => {});
    socket.setNoDelay(true);
    const opened = send(socket, (isHostile && case_.opens) || settings, 0);
    const onRequest = async (request) => {
      const acts = isHostile;
      isHostile = false;
      if (acts && case_.reads === false) socket.pause();
      await opened;
      await send(socket, acts ? case_.answers : answer, request);
      if (acts && case_.ends === "close") socket.end();
    };
    (isHttp2 ? readHttp2 : readHttp1)(socket, onRequest);
  };
  const tls = { ...certificate, ALPNProtocols: ["h2"] };
  const server = isHttp2 ? createTlsServer(tls, accept) : createServer(accept);
  server.on("tlsClientError", () => {});
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return `${isHttp2 ? "https" : "http"}://localhost:${server.address().port}`;
}

/** `completion`, or the kind of the error. */
async function outcome(client, stream) {
  try {
    const answer = await client.chat.completions.create({ model: "m", messages: [], stream });
    if (stream) for await (const _ of answer);
  } catch (error) {
    assert.ok(error instanceof APIError, error);
    return error.kind;
  }
  return "completion";
}

for (const protocol of ["http1", "http2"]) {
  test(`vectors: hostile/${protocol}.json`, async (t) => {
    for (const case_ of readVectors(`hostile/${protocol}.json`).cases) {
      await t.test(case_.name, async (t) => {
        const next = case_.next ?? "completion";
        const timeoutMs = [case_.outcome, next].includes("timeout") ? SHORT_MS : LONG_MS;
        const client = new Client({
          baseUrl: await serve(t, case_, protocol),
          apiKey: "sk-test",
          maxRetries: 0,
          maxBodyBytes: 1 << 20,
          timeoutMs,
          eventTimeoutMs: timeoutMs,
          caBundle,
        });
        assert.equal(await outcome(client, case_.stream ?? false), case_.outcome);
        assert.equal(await outcome(client, false), next, "the next call");
      });
    }
  });
}
