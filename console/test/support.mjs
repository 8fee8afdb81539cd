// A real gateway, a real browser, and checks for what must never happen in it.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

export const KEY = "gw-console-canary-4f2a";
export const ADMIN_KEY = "gw-console-admin-canary-77";
export const PROGRAM = process.env.GATEWRIGHT_BIN ?? "../target/debug/gatewright";
/** Folder with the pages as `npm run build` leaves them: they replace those in the program. */
const PAGES = process.env.GATEWRIGHT_CONSOLE_DIST;
const CHROMIUM = process.env.GATEWRIGHT_CHROMIUM ?? "/usr/bin/chromium";

/** Starts a gateway. `arguments`: extra arguments; `environment`: variables besides the keys; `config`: its configuration. */
export async function startGateway({ arguments: more = [], environment = {}, config } = {}) {
  const folder = config === undefined ? null : await mkdtemp(join(tmpdir(), "gatewright-config-"));
  const file = folder === null ? [] : ["--config", join(folder, "gatewright.toml")];
  if (folder !== null) await writeFile(file[1], config);
  const child = spawn(PROGRAM, ["serve", "--listen", "127.0.0.1:0", "--json", ...file, ...more], {
    env: {
      PATH: process.env.PATH,
      GATEWRIGHT_SERVE_KEY: KEY,
      GATEWRIGHT_SERVE_ADMIN_KEY: ADMIN_KEY,
      ...environment,
    },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout });
  const line = await new Promise((resolve, reject) => {
    lines.once("line", resolve);
    child.once("exit", (status) => reject(new Error(`the gateway ended with ${status}`)));
    child.once("error", reject);
  });
  const url = JSON.parse(line).listening;
  return {
    url,
    async call(path, { key = KEY, ...options } = {}) {
      const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
      const body = options.body === undefined ? undefined : JSON.stringify(options.body);
      return fetch(`${url}${path}`, { ...options, headers, body });
    },
    async stop() {
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGTERM");
      await ended;
      if (folder !== null) await rm(folder, { recursive: true });
    },
  };
}

/** Starts a browser with its own profile. */
export async function startBrowser() {
  const profile = await mkdtemp(join(tmpdir(), "gatewright-console-"));
  const browser = await chromium.launch({
    executablePath: CHROMIUM,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
    env: { ...process.env, HOME: profile },
  });
  return {
    /** Opens a page that fails the test if it violates its policy, logs an error or contacts another host. */
    async open(
      gateway,
      { width = 1280, height = 900, scheme = "light", isTouched = false, expected = [] } = {},
    ) {
      const context = await browser.newContext({
        viewport: { width, height },
        colorScheme: scheme,
        hasTouch: isTouched,
        isMobile: isTouched,
        reducedMotion: "reduce",
        permissions: ["clipboard-read", "clipboard-write"],
      });
      const page = await context.newPage();
      page.setDefaultTimeout(60_000);
      const complaints = [];
      page.on("pageerror", (error) => complaints.push(`error: ${error.message}`));
      page.on("console", (message) => {
        if (message.type() === "error") complaints.push(`console: ${message.text()}`);
      });
      page.on("request", (request) => {
        const to = request.url();
        if (!to.startsWith(gateway.url) && !to.startsWith("data:") && !to.startsWith("blob:"))
          complaints.push(`request to ${to}`);
        if (to.includes("canary")) complaints.push(`a key in the address ${to}`);
      });
      if (PAGES !== undefined) await replacePages(context, gateway);
      await page.addInitScript(() => {
        addEventListener("securitypolicyviolation", (event) => {
          console.error(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}`);
        });
      });
      await page.goto(gateway.url);
      return {
        page,
        context,
        complaints,
        async signIn(key) {
          await page.getByLabel("Key", { exact: false }).first().fill(key);
          await page.getByRole("button", { name: "Sign in" }).click();
          await page
            .getByRole("button", { name: "Sign out", includeHidden: true })
            .waitFor({ state: "attached" });
        },
        /** Goes to a page and waits until it is shown: the browser reports a new URL with a delay. */
        async go(path) {
          await page.evaluate(
            (to) =>
              new Promise((resolve) => {
                if (location.hash === `#/${to}`) return resolve();
                addEventListener("hashchange", () => requestAnimationFrame(() => resolve()), { once: true });
                location.hash = `#/${to}`;
              }),
            path,
          );
        },
        async close() {
          await context.close();
          const other = complaints.filter((text) => !expected.some((pattern) => pattern.test(text)));
          assert.deepEqual(other, []);
        },
      };
    },
    async close() {
      await browser.close();
      await rm(profile, { recursive: true, force: true });
    },
  };
}

/** Serves the pages of the folder, with the headers of the gateway. */
async function replacePages(context, gateway) {
  const page = await readFile(join(PAGES, "index.html"));
  await context.route(`${gateway.url}/`, async (route) => {
    const request = route.request();
    if (!request.isNavigationRequest() || request.frame().parentFrame()) return route.fallback();
    await route.fulfill({ response: await route.fetch(), body: page });
  });
  await context.route(`${gateway.url}/console/assets/*`, (route) =>
    route.fulfill({ path: join(PAGES, new URL(route.request().url()).pathname.slice("/console/".length)) }),
  );
}

/** What Chromium logs when a report's frame blocks the script that this file adds to every frame. */
export const BLOCKED = /Blocked script execution in 'blob:/;

/** What Chromium logs for a response that isn't a success, which is no error of the page. */
export const REFUSED = /Failed to load resource: the server responded with a status of (4|5)\d\d/;

/**
 * Receives notifications until the test `t` ends, and responds to each with `status`, which tests may change. `received` counts
 * them.
 */
export async function receiveNotifications(t, status) {
  const receiver = { status, received: 0 };
  const server = createServer((request, response) => {
    request.resume().on("end", () => {
      receiver.received += 1;
      response.writeHead(receiver.status).end();
    });
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  t.after(() => server.close());
  receiver.url = `http://127.0.0.1:${server.address().port}/hook`;
  return receiver;
}

/**
 * Starts a provider of the chat protocol, and a gateway whose only model, `model-test`, is the provider's; both last until the
 * test `t` ends. `answers`: what the provider answers to each request in turn, and to all after the last: a list of pieces of a
 * stream, or a status. Its list of models has one. `bodies`: those of the requests.
 */
export async function startWithProvider(t, answers) {
  const bodies = [];
  const server = createServer(async (request, response) => {
    if (request.method === "GET") {
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ object: "list", data: [{ id: "model-test", object: "model" }] }));
      return;
    }
    let body = "";
    for await (const piece of request.setEncoding("utf8")) body += piece;
    bodies.push(JSON.parse(body));
    const answer = answers[Math.min(bodies.length, answers.length) - 1];
    if (typeof answer === "number") {
      response.writeHead(answer, { "content-type": "application/json" });
      response.end(JSON.stringify({ error: { message: "The provider refuses this.", type: "invalid" } }));
      return;
    }
    const base = { id: "c", object: "chat.completion.chunk", created: 1, model: "m" };
    const event = (delta, reason = null) => {
      const choices = [{ index: 0, delta, finish_reason: reason }];
      response.write(`data: ${JSON.stringify({ ...base, choices })}\n\n`);
    };
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const piece of answer) {
      event(typeof piece === "string" ? { content: piece } : piece);
      // Pieces of different frames.
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    event({}, "stop");
    response.end("data: [DONE]\n\n");
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  t.after(() => server.close());
  const config = `
[upstreams.test]
kind = "chat"
base_url = "http://127.0.0.1:${server.address().port}/v1"
key = { env = "TEST_KEY" }
[models.model-test]
translate_responses = true
targets = [{ upstream = "test", model = "model-test" }]
`;
  const gateway = await startGateway({ config, environment: { TEST_KEY: "none" } });
  t.after(() => gateway.stop());
  return { gateway, bodies };
}
