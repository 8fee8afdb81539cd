// A server on loopback that answers each request with the bytes that a test writes.

import { once } from "node:events";
import { createServer } from "node:net";
import { createServer as createTlsServer } from "node:tls";

/**
 * Starts a server. `answer(request, socket)` is called for each request, with
 * `{ method, target, headers, body, socket }` (names in lower case, body as text). Sockets are destroyed when the
 * test `t` ends. `tls`: options of a TLS server, to be one.
 */
export async function serve(t, answer, tls) {
  const sockets = new Set();
  const requests = [];
  const accept = (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    // Some tests are about disconnecting clients.
    socket.on("error", () => {});
    let received = "";
    socket.setEncoding("latin1");
    socket.on("data", (text) => {
      received += text;
      for (let request = take(); request !== undefined; request = take()) {
        requests.push(request);
        answer(request, socket);
      }
    });

    function take() {
      const end = received.indexOf("\r\n\r\n");
      if (end === -1) return undefined;
      const [line, ...rest] = received.slice(0, end).split("\r\n");
      const headers = Object.fromEntries(
        rest.map((header) => {
          const colon = header.indexOf(":");
          return [header.slice(0, colon).toLowerCase(), header.slice(colon + 1).trim()];
        }),
      );
      const length = Number(headers["content-length"] ?? 0);
      if (received.length < end + 4 + length) return undefined;
      const body = Buffer.from(received.slice(end + 4, end + 4 + length), "latin1").toString("utf8");
      received = received.slice(end + 4 + length);
      const [method, target] = line.split(" ");
      return { method, target, headers, body, socket };
    }
  };
  const server = tls === undefined ? createServer(accept) : createTlsServer(tls, accept);
  // A client that rejects the certificate is not the server's failure.
  server.on("tlsClientError", () => {});
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const scheme = tls === undefined ? "http" : "https";
  return { url: `${scheme}://127.0.0.1:${server.address().port}`, requests, sockets };
}

/** Writes a whole response. `document`: text, or a value to be serialized as JSON. */
export function answerWith(socket, status, document, headers = {}) {
  const body = typeof document === "string" ? document : JSON.stringify(document);
  const fields = {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
    "x-request-id": "req_test",
    ...headers,
  };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`HTTP/1.1 ${status} Status\r\n${lines.join("")}\r\n${body}`);
}

/** Writes the head of an event stream that ends with the connection. */
export function beginEvents(socket) {
  socket.write(
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nx-request-id: req_stream\r\nconnection: close\r\n\r\n",
  );
}

/** Writes events, each a value to be serialized as JSON or a string written unchanged. */
export function sendEvents(socket, ...events) {
  for (const event of events) {
    socket.write(`data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`);
  }
}

/** A chunk of a chat completion with this text, or the last one. */
export function chunk(content, finish_reason = null) {
  return {
    id: "c1",
    object: "chat.completion.chunk",
    choices: [{ index: 0, delta: content === undefined ? {} : { content }, finish_reason }],
  };
}

/** Resolves when the client has closed the connection, or reset it with unread bytes; rejects after `timeoutMs`. */
export async function closedByClient(socket, timeoutMs = 1000) {
  if (socket.destroyed) return;
  await new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`open after ${timeoutMs} ms`)), timeoutMs);
    socket.once("close", () => {
      clearTimeout(late);
      resolve();
    });
  });
}
