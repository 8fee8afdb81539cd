// Webhooks (2.7, 6): the vectors, the reference implementation, our gateway, and the inputs that servers provide.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import {
  Client,
  ConfigurationError,
  DecodeError,
  GatewrightError,
  WebhookSignatureError,
  webhooks,
} from "gatewright";
import { Webhook as Reference } from "standardwebhooks";

import { notOnDeno } from "./support/process.mjs";
import { readVectors } from "./support/vectors.mjs";

const PROGRAM =
  process.env.GATEWRIGHT_BIN ?? fileURLToPath(new URL("../../target/debug/gatewright", import.meta.url));

const vectors = readVectors("webhooks/verify.json");
const SECRET = vectors.secrets.a;
const BODY = vectors.body;

const now = () => Math.floor(Date.now() / 1000);

function bodyOf(given) {
  if (given === undefined) return Buffer.from(BODY);
  const bytes = given.text === undefined ? Buffer.from(given.hex, "hex") : Buffer.from(given.text);
  return Buffer.concat(Array(given.times ?? 1).fill(bytes));
}

/** Uses the reference where possible: it signs only whole seconds and UTF-8. */
function sign(secret, id, timestamp, body) {
  const text = body.toString();
  if (/^\d{1,12}$/.test(timestamp) && Buffer.from(text).equals(body)) {
    return new Reference(secret).sign(id, new Date(Number(timestamp) * 1000), text);
  }
  const key = Buffer.from(secret.replace("whsec_", ""), "base64");
  return `v1,${createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest("base64")}`;
}

function signature(given, test, timestamp) {
  if (typeof given === "string") return given;
  const { secret, id = vectors.id, age_s, version = "v1", cut = 0, body = test.body } = given;
  const at = age_s === undefined ? timestamp : String(now() - age_s);
  const made = sign(vectors.secrets[secret], id, at, bodyOf(body));
  const versioned = version === "" ? made.replace("v1,", "") : made.replace("v1", version);
  return versioned.slice(0, versioned.length - cut);
}

function headersOf(test) {
  const timestamp = test.set?.["webhook-timestamp"] ?? String(now() - (test.age_s ?? 0));
  const signatures = test.signatures.map((given) => signature(given, test, timestamp));
  const headers = {
    "content-type": "application/json",
    "webhook-id": vectors.id,
    "webhook-timestamp": timestamp,
    "webhook-signature": signatures.join(test.separator ?? " "),
    ...test.set,
  };
  const kept = Object.entries(headers).filter(([name]) => !(test.remove ?? []).includes(name));
  return [...kept.map(([name, value]) => [test.rename?.[name] ?? name, value]), ...(test.add ?? [])];
}

for (const vector of vectors.cases) {
  test(`vector: ${vector.name}`, () => {
    const secrets = vector.secrets.map((name) => vectors.secrets[name]);
    const unwrap = () => webhooks.unwrap(bodyOf(vector.body), headersOf(vector), secrets);
    if (vector.error === undefined) {
      const task = unwrap();
      const actual = Object.fromEntries(Object.keys(vector.task).map((name) => [name, task[name]]));
      assert.deepEqual(actual, vector.task);
      return;
    }
    assert.throws(unwrap, (error) => {
      const kinds = { decode: DecodeError, configuration: ConfigurationError };
      const expected = kinds[vector.error] ?? WebhookSignatureError;
      assert.ok(error instanceof GatewrightError);
      assert.equal(error.constructor, expected);
      if (expected === WebhookSignatureError) assert.equal(error.code, vector.error);
      assert.equal(error.param, vector.param);
      for (const secret of Object.values(vectors.secrets)) {
        assert.ok(!JSON.stringify([error, error.message, error.stack]).includes(secret.slice(6)));
      }
      return true;
    });
  });
}

function fresh(secret = SECRET) {
  const timestamp = String(now());
  return {
    "webhook-id": "msg_1",
    "webhook-timestamp": timestamp,
    "webhook-signature": sign(secret, "msg_1", timestamp, Buffer.from(BODY)),
  };
}

test("headers are accepted as servers provide them", () => {
  const headers = fresh();
  const lists = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]]));
  for (const given of [
    headers,
    new Headers(headers),
    Object.entries(headers),
    new Map(Object.entries(headers)),
    lists,
  ]) {
    assert.equal(webhooks.unwrap(BODY, given, SECRET).id, "task_1");
  }
  const twice = { ...lists, "webhook-id": ["msg_1", "msg_2"], accept: undefined };
  assert.throws(() => webhooks.unwrap(BODY, twice, SECRET), {
    code: "duplicate_header",
    param: "webhook-id",
  });
  const joined = new Headers(headers);
  joined.append("webhook-id", "msg_2");
  assert.throws(() => webhooks.unwrap(BODY, joined, SECRET), { code: "no_matching_signature" });
  assert.throws(() => webhooks.unwrap(BODY, undefined, SECRET), TypeError);
});

test("bodies are bytes or text, and parsed objects are rejected", () => {
  const bytes = Buffer.from(`..${BODY}`).subarray(2);
  const buffer = new Uint8Array(Buffer.from(BODY)).buffer;
  for (const body of [BODY, bytes, new Uint8Array(bytes), buffer]) {
    assert.equal(webhooks.unwrap(body, fresh(), SECRET).status, "completed");
  }
  for (const parsed of [JSON.parse(BODY), null, undefined, [BODY]]) {
    const refused = { name: "TypeError", message: /as it arrived.*request\.text\(\)/ };
    assert.throws(() => webhooks.unwrap(parsed, fresh(), SECRET), refused);
    assert.throws(() => webhooks.parseUnsigned(parsed), refused);
  }
});

test("secrets come from the environment by default", {
  skip: notOnDeno("it runs no module of a command line"),
}, async () => {
  const program = `
    import { webhooks } from "gatewright";
    const { body, headers } = JSON.parse(process.argv[1]);
    try { console.log(webhooks.unwrap(body, headers).id); } catch (error) { console.log(error.name); }
  `;
  const run = async (secrets) => {
    const request = JSON.stringify({ body: BODY, headers: fresh() });
    const environment = { ...process.env, GATEWRIGHT_WEBHOOK_SECRET: secrets };
    const child = spawn(process.execPath, ["--input-type=module", "-e", program, request], {
      cwd: fileURLToPath(new URL("../../examples/node", import.meta.url)),
      env: environment,
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [text] = await Promise.all([child.stdout.setEncoding("utf8").toArray(), once(child, "close")]);
    return text.join("").trim();
  };
  assert.equal(await run(`${vectors.secrets.b} ${SECRET}`), "task_1");
  assert.equal(await run(""), "ConfigurationError");
  assert.throws(() => webhooks.unwrap(BODY, fresh(), vectors.secrets.b), WebhookSignatureError);
  assert.throws(
    () => webhooks.unwrap(BODY, fresh(), "canary"),
    (error) => error instanceof ConfigurationError && !error.message.includes("canary"),
  );
});

test("a client has webhooks, too, and error stacks point to the call", () => {
  const client = new Client({ baseUrl: "http://127.0.0.1:9", apiKey: "key" });
  assert.equal(client.webhooks.unwrap(BODY, fresh(), [SECRET]).id, "task_1");
  assert.equal(client.webhooks.parseUnsigned(BODY).model, "video_model_1");
  assert.throws(
    () => {
      // Not the last thing the function does: Bun omits the frame of such a call.
      client.webhooks.parseUnsigned("not json");
    },
    (error) => {
      assert.ok(error instanceof DecodeError);
      assert.match(error.stack.split("\n")[1], /webhooks\.test\.mjs/);
      return true;
    },
  );
});

test("we and the reference accept what the gateway posts", async (t) => {
  const posts = [];
  const receiver = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray());
    posts.push({ headers: request.headers, body });
    response.writeHead(204).end();
    receiver.emit("post");
  });
  receiver.listen(0, "127.0.0.1");
  await once(receiver, "listening");
  const gateway = spawn(PROGRAM, ["serve", "--json", "--listen", "127.0.0.1:0", "--allow-private-webhooks"], {
    cwd: join(fileURLToPath(import.meta.url), ".."),
    stdio: ["ignore", "pipe", "inherit"],
  });
  t.after(() => {
    gateway.kill();
    receiver.close();
  });
  const { value } = await createInterface({ input: gateway.stdout })[Symbol.asyncIterator]().next();
  const { listening, key, webhook_secret: secret } = JSON.parse(value);
  const client = new Client({ baseUrl: listening, apiKey: key });
  for (const [prompt, status] of [
    ["waves", "completed"],
    ["waves [fail]", "failed"],
  ]) {
    const posted = once(receiver, "post", { signal: AbortSignal.timeout(30_000) });
    const task = await client.videos.generations.create({
      model: "video_model_1",
      prompt,
      duration: 3,
      resolution: "720p",
      webhook_url: `http://127.0.0.1:${receiver.address().port}/`,
    });
    await posted;
    const { headers, body } = posts.at(-1);
    const event = client.webhooks.unwrap(body, headers, secret);
    assert.deepEqual([event.id, event.status], [task.id, status]);
    assert.deepEqual(new Reference(secret).verify(body.toString(), headers), event);
    const tampered = Buffer.concat([body, Buffer.from(" ")]);
    assert.throws(() => client.webhooks.unwrap(tampered, headers, secret), WebhookSignatureError);
  }
});
