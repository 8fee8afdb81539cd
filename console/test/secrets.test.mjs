// Where keys are stored, and where they are not.
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { ADMIN_KEY, KEY, REFUSED, startBrowser, startGateway } from "./support.mjs";

let gateway;
let browser;
before(async () => {
  [gateway, browser] = await Promise.all([startGateway(), startBrowser()]);
});
after(() => Promise.all([gateway.stop(), browser.close()]));

/** Everything that outlives the tab. */
const storage = (page) =>
  page.evaluate(async () => ({
    local: { ...localStorage },
    cookies: document.cookie,
    databases: (await indexedDB.databases()).map(({ name }) => name),
    caches: await caches.keys(),
    workers: (await navigator.serviceWorker.getRegistrations()).length,
  }));

test("keys stay in the tab, are sent only in a header, and are removed at sign-out", async () => {
  const tab = await browser.open(gateway);
  const { page } = tab;
  const withKey = [];
  page.on("request", (request) => {
    const { authorization } = request.headers();
    if (authorization) withKey.push(request.url());
  });
  await tab.signIn(KEY);
  await tab.go("keys");
  await tab.signIn(ADMIN_KEY);
  await page.getByRole("button", { name: "Create a key" }).waitFor();
  assert.deepEqual(await storage(page), { local: {}, cookies: "", databases: [], caches: [], workers: 0 });
  const session = await page.evaluate(() => ({ ...sessionStorage }));
  assert.deepEqual(Object.keys(session), ["gatewright.keys"]);
  assert.doesNotMatch(page.url(), /canary/);
  assert.doesNotMatch(await page.content(), /canary/);
  assert.ok(withKey.length > 0 && withKey.every((url) => url.startsWith(gateway.url)));

  // A reloaded tab stays signed in; another tab has no key.
  await page.reload();
  await page.getByRole("button", { name: "Create a key" }).waitFor();
  const other = await tab.context.newPage();
  await other.goto(gateway.url);
  await other.getByLabel("Key").waitFor();
  await other.close();

  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("Admin key").or(page.getByLabel("Key")).first().waitFor();
  assert.deepEqual(await page.evaluate(() => ({ ...sessionStorage })), {});
  await tab.close();
});

test("a code signs in once, with both keys, and stays nowhere", async () => {
  // The gateway opens its page in this browser.
  const folder = await mkdtemp(join(tmpdir(), "gatewright-open-"));
  const opened = join(folder, "opened");
  await writeFile(
    join(folder, "xdg-open"),
    `#!/bin/sh\necho "$1" > '${opened}.new'; mv '${opened}.new' '${opened}'\n`,
    {
      mode: 0o755,
    },
  );
  const opening = await startGateway({
    arguments: ["--open"],
    environment: { PATH: `${folder}:${process.env.PATH}` },
  });
  let address;
  while (address === undefined) {
    await new Promise((done) => setTimeout(done, 20));
    address = await readFile(opened, "utf8").catch(() => undefined);
  }
  const fragment = new URL(address.trim()).hash;
  assert.match(fragment, /^#sign-in=[\w-]{43}$/);
  const tab = await browser.open(opening, { expected: [REFUSED] });
  const { page } = tab;
  await page.goto(`${opening.url}/${fragment}`);
  await page.reload();
  await page.getByRole("textbox", { name: "Message" }).waitFor();
  assert.equal(new URL(page.url()).hash, "#/");
  await tab.go("keys");
  await page.getByRole("button", { name: "Create a key" }).waitFor();
  assert.deepEqual(await storage(page), { local: {}, cookies: "", databases: [], caches: [], workers: 0 });

  const late = await tab.context.newPage();
  await late.goto(`${opening.url}/${fragment}`);
  await late.getByText("was used already").waitFor();
  await late.close();
  await tab.close();
  await opening.stop();
  await rm(folder, { recursive: true });
});

test("typed text is not shown to the next user who signs in", async () => {
  const tab = await browser.open(gateway);
  await tab.signIn(KEY);
  await tab.page.getByRole("textbox", { name: "System prompt" }).fill("Answer in rhyme.");
  await tab.page.getByRole("textbox", { name: "Message" }).fill("Tell me about rivers.");
  await tab.page.getByRole("button", { name: "Sign out" }).click();
  await tab.page.getByLabel("Key").first().waitFor();
  await tab.signIn(KEY);
  assert.equal(await tab.page.getByRole("textbox", { name: "System prompt" }).inputValue(), "");
  assert.equal(await tab.page.getByRole("textbox", { name: "Message" }).inputValue(), "");
  await tab.close();
});

test("a revoked key is removed when the page is reloaded", async () => {
  const made = await gateway.call("/admin/keys", { key: ADMIN_KEY, method: "POST", body: { name: "short" } });
  const { secret } = await made.json();
  const tab = await browser.open(gateway, { expected: [REFUSED] });
  await tab.signIn(secret);
  await gateway.call("/admin/keys/short", { key: ADMIN_KEY, method: "DELETE" });
  await tab.page.reload();
  await tab.page.getByRole("alert").getByText("Incorrect API key").waitFor();
  assert.deepEqual(await tab.page.evaluate(() => ({ ...sessionStorage })), {});
  await tab.close();
});

test("text in a conversation is never markup", async () => {
  const tab = await browser.open(gateway);
  await tab.signIn(KEY);
  await tab.page
    .getByRole("textbox", { name: "Message" })
    .fill("Reply with exactly: <img src=x onerror=alert(1)>");
  await tab.page.getByRole("button", { name: "Send", exact: true }).click();
  await tab.page.getByText("Finish reason").waitFor();
  assert.equal(await tab.page.locator("[role=log] img").count(), 0);
  await tab.close();
});

test("pages of other sites can't frame it", async () => {
  const tab = await browser.open(gateway, {
    expected: [/frame-ancestors|ERR_BLOCKED_BY_RESPONSE|chrome-error/],
  });
  const { createServer } = await import("node:http");
  const site = createServer((_, response) => {
    response.setHeader("content-type", "text/html");
    response.end(`<title>other</title><iframe src="${gateway.url}/"></iframe>`);
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => site.once("listening", resolve));
  const other = await tab.context.newPage();
  await other.goto(`http://127.0.0.1:${site.address().port}/`);
  await other.waitForFunction(() => document.querySelector("iframe").contentDocument === null);
  const inside = other.frames()[1];
  assert.equal(await inside.locator("#console").count(), 0);
  await other.close();
  await tab.close();
  site.close();
});

test("a new secret isn't lost by Escape or by a click outside", async () => {
  const tab = await browser.open(gateway);
  const { page } = tab;
  await tab.signIn(ADMIN_KEY);
  await tab.go("keys");
  await page.getByRole("button", { name: "Create a key" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("kept");
  await dialog.getByRole("button", { name: "Create", exact: true }).click();
  const secret = await dialog.locator(".secret").textContent();
  await page.keyboard.press("Escape");
  await dialog.getByRole("alert").getByText("Have you saved the secret?").waitFor();
  await page.mouse.click(5, 5);
  assert.equal(await dialog.locator(".secret").textContent(), secret);
  await dialog.getByRole("button", { name: "I've saved it" }).click();
  await dialog.waitFor({ state: "detached" });
  await tab.close();
});

test("the field of the sign-in form has the focus, and says which key it needs", async () => {
  const tab = await browser.open(gateway);
  const { page } = tab;
  const typed = async (key) => {
    await page.keyboard.type(key);
    await page.keyboard.press("Enter");
  };
  await page.getByText("gatewright keys local prints its keys").waitFor();
  await typed(KEY);
  await page.getByRole("button", { name: "Sign out" }).waitFor();
  await tab.go("keys");
  await page.getByText("The admin key is the one in GATEWRIGHT_SERVE_ADMIN_KEY").waitFor();
  await page.getByText("gatewright keys local prints it.").waitFor();
  await typed(ADMIN_KEY);
  await page.getByRole("button", { name: "Create a key" }).waitFor();
  // The focus moves after the page is painted.
  await page.waitForFunction(() => document.activeElement?.textContent === "Keys");
  await tab.close();
});
