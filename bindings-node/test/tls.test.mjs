// Whom the client trusts, and how it identifies itself.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { APIConnectionError, Client, ConfigurationError } from "gatewright";
import { generate } from "selfsigned";

import { answerWith, serve } from "./support/server.mjs";

const MODELS = { object: "list", data: [] };

let folder;
let authority;

/** A file in the folder of these tests. */
function file(name, ...parts) {
  const path = join(folder, name);
  writeFileSync(path, parts.join(""));
  return path;
}

/** A certificate and its key, signed by the authority. */
const signed = (name, usage) =>
  generate([{ name: "commonName", value: name }], {
    keyType: "ec",
    algorithm: "sha256",
    ca: { key: authority.private, cert: authority.cert },
    extensions: [
      { name: "basicConstraints", cA: false },
      { name: "extKeyUsage", [usage]: true },
      { name: "subjectAltName", altNames: [{ type: 7, ip: "127.0.0.1" }] },
    ],
  });

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "gatewright-"));
  authority = await generate([{ name: "commonName", value: "Test Authority" }], {
    keyType: "ec",
    algorithm: "sha256",
    extensions: [
      { name: "basicConstraints", cA: true, critical: true },
      { name: "keyUsage", keyCertSign: true, cRLSign: true, critical: true },
    ],
  });
});

after(() => rmSync(folder, { recursive: true, force: true }));

/** URL of a server with a certificate from the authority; `options` are those of a TLS server. */
async function secure(t, options = {}) {
  const { cert, private: key } = await signed("127.0.0.1", "serverAuth");
  const answer = (_, socket) => {
    const { subject } = socket.getPeerCertificate();
    answerWith(socket, 200, MODELS, { "x-client": subject?.CN ?? "nobody" });
  };
  const { url } = await serve(t, answer, { cert, key, ...options });
  return url;
}

const list = (baseUrl, options) =>
  new Client({ baseUrl, apiKey: "sk-test", maxRetries: 0, ...options }).models.list().withResponse();

test("a gateway with a company's own certificate is trusted only with its CA bundle", async (t) => {
  const url = await secure(t);
  await assert.rejects(list(url), APIConnectionError);
  const caBundle = file("ca.pem", authority.cert);
  assert.equal((await list(url, { caBundle })).response.status, 200);
});

test("a CA bundle can be set in the environment", async (t) => {
  const url = await secure(t);
  const { GATEWRIGHT_CA_BUNDLE } = process.env;
  t.after(() => {
    if (GATEWRIGHT_CA_BUNDLE === undefined) delete process.env.GATEWRIGHT_CA_BUNDLE;
    else process.env.GATEWRIGHT_CA_BUNDLE = GATEWRIGHT_CA_BUNDLE;
  });
  process.env.GATEWRIGHT_CA_BUNDLE = file("environment.pem", authority.cert);
  assert.equal((await list(url)).response.status, 200);
});

test("a client certificate is presented on request", async (t) => {
  const url = await secure(t, { requestCert: true, rejectUnauthorized: true, ca: authority.cert });
  const caBundle = file("ca.pem", authority.cert);
  await assert.rejects(list(url, { caBundle }), APIConnectionError);
  const { cert, private: key } = await signed("billing service", "clientAuth");
  const clientCertificate = file("client.pem", cert, "\n", key);
  const { response } = await list(url, { caBundle, clientCertificate });
  assert.equal(response.headers.get("x-client"), "billing service");
});

test("an unusable certificate file is rejected by name when the client is created", () => {
  const options = { baseUrl: "https://127.0.0.1:9", apiKey: "sk-test" };
  const broken = file("broken.pem", "no certificate");
  for (const given of [
    { caBundle: broken },
    { clientCertificate: broken },
    { caBundle: join(folder, "missing.pem") },
  ]) {
    assert.throws(
      () => new Client({ ...options, ...given }),
      (error) => error instanceof ConfigurationError && /(broken|missing)\.pem/.test(error.message),
    );
  }
});
