// How the gateway serves the page: to which clients, with what compression, caching and policy.
import assert from "node:assert/strict";
import { request } from "node:http";
import { after, before, test } from "node:test";
import { gunzipSync } from "node:zlib";
import { startGateway } from "./support.mjs";

let gateway;
before(async () => {
  gateway = await startGateway();
});
after(() => gateway.stop());

/** Sends a request without the headers that `fetch` adds. */
function ask(path, headers = {}, method = "GET") {
  return new Promise((resolve, reject) => {
    const call = request(`${gateway.url}${path}`, { method, headers }, async (response) => {
      const pieces = [];
      for await (const piece of response) pieces.push(piece);
      resolve({ status: response.statusCode, headers: response.headers, body: Buffer.concat(pieces) });
    });
    call.on("error", reject);
    call.end();
  });
}

const BROWSER = { accept: "text/html,application/xhtml+xml,*/*;q=0.8", "accept-encoding": "gzip" };

test("a browser gets the page, and API clients still get 404", async () => {
  const page = await ask("/", BROWSER);
  assert.equal(page.status, 200);
  assert.equal(page.headers["content-type"], "text/html; charset=utf-8");
  assert.equal(page.headers["cache-control"], "no-cache");
  assert.match(page.headers.vary, /accept/);
  for (const accept of ["*/*", "application/json", undefined]) {
    const other = await ask("/", accept ? { accept } : {});
    assert.equal(other.status, 404);
    assert.equal(JSON.parse(other.body).error.code, "not_found");
  }
});

test("the page's policy allows its own files and nothing else", async () => {
  const { headers } = await ask("/", BROWSER);
  const policy = new Map(
    headers["content-security-policy"].split(";").map((rule) => {
      const [name, ...values] = rule.trim().split(/\s+/);
      return [name, values];
    }),
  );
  assert.deepEqual(policy.get("default-src"), ["'none'"]);
  assert.deepEqual(policy.get("script-src"), ["'self'"]);
  assert.deepEqual(policy.get("connect-src"), ["'self'"]);
  assert.deepEqual(policy.get("frame-ancestors"), ["'none'"]);
  assert.deepEqual(policy.get("form-action"), ["'none'"]);
  assert.deepEqual(policy.get("base-uri"), ["'none'"]);
  const [self, hash, ...rest] = policy.get("style-src");
  assert.equal(self, "'self'");
  assert.match(hash, /^'sha256-[\w+/]+=*'$/);
  assert.deepEqual(rest, []);
  assert.doesNotMatch(headers["content-security-policy"], /unsafe|https?:/);
  assert.equal(headers["x-frame-options"], "DENY");
  assert.equal(headers["x-content-type-options"], "nosniff");
  assert.equal(headers["referrer-policy"], "no-referrer");
  assert.equal(headers["cross-origin-opener-policy"], "same-origin");
});

test("files are named by the hash of their content and cached forever", async () => {
  const page = gunzipSync((await ask("/", BROWSER)).body).toString();
  const names = [...page.matchAll(/"(\/console\/assets\/[^"]+)"/g)].map((match) => match[1]);
  assert.ok(names.some((name) => name.endsWith(".js")) && names.some((name) => name.endsWith(".css")), page);
  let sum = 0;
  for (const name of names) {
    const compressed = await ask(name, BROWSER);
    assert.equal(compressed.status, 200);
    assert.equal(compressed.headers["content-encoding"], "gzip");
    assert.equal(compressed.headers["cache-control"], "public, max-age=31536000, immutable");
    sum += compressed.body.length;
    const plain = await ask(name);
    assert.equal(plain.headers["content-encoding"], undefined);
    assert.ok(gunzipSync(compressed.body).equals(plain.body));
    const head = await ask(name, BROWSER, "HEAD");
    assert.equal(Number(head.headers["content-length"]), compressed.body.length);
  }
  assert.ok(sum < 300 * 1024, `${sum} bytes`);
});

test("nothing else is served, and paths that need a key reject requests without one", async () => {
  for (const path of [
    "/console/",
    "/console/assets/",
    "/console/index.html",
    "/console/assets/../index.html",
  ]) {
    assert.equal((await ask(path, BROWSER)).status, 404, path);
  }
  assert.equal((await ask("/console/session")).status, 401);
  assert.equal((await ask("/console/session?key=gw-console-canary-4f2a")).status, 401);
  assert.equal((await ask("/console/report", {}, "POST")).status, 401);
  assert.equal((await ask("/console/report")).status, 405);
  assert.equal((await ask("/console/session", {}, "DELETE")).status, 405);
});

test("a session lists what a key may do, and contains no key", async () => {
  const client = await gateway.call("/console/session");
  assert.equal(client.headers.get("cache-control"), "no-store");
  const text = await client.text();
  assert.doesNotMatch(text, /canary/);
  const session = JSON.parse(text);
  assert.deepEqual([session.role, session.key, session.admin], ["client", "default", true]);
  const sol = session.models.find((model) => model.id === "model-sol");
  assert.deepEqual(sol.protocols, ["chat", "responses", "messages", "native"]);
  assert.deepEqual([...new Set(session.models.map((model) => model.kind))].sort(), [
    "embedding",
    "image",
    "moderation",
    "rerank",
    "speech",
    "text",
    "transcription",
    "video",
  ]);
});
