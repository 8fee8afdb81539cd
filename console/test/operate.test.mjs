// What operators see and do: requests, usage, upstreams, webhooks, keys.
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { ADMIN_KEY, KEY, REFUSED, startBrowser, startGateway } from "./support.mjs";

let gateway;
let browser;
let data;
before(async () => {
  // Revoked keys stay known where they are kept.
  data = await mkdtemp(join(tmpdir(), "gatewright-data-"));
  [gateway, browser] = await Promise.all([
    startGateway({ arguments: ["--allow-private-webhooks", "--data", data] }),
    startBrowser(),
  ]);
});
after(async () => {
  await Promise.all([gateway.stop(), browser.close()]);
  await rm(data, { recursive: true });
});

const question = (model, text) => ({ model, messages: [{ role: "user", content: text }] });

test("pages of operators ask for the admin key, and say so if another is given", async () => {
  const tab = await browser.open(gateway, { expected: [REFUSED] });
  await tab.signIn(KEY);
  await tab.go("keys");
  await tab.page.getByLabel("Admin key").fill(KEY);
  await tab.page.getByRole("button", { name: "Sign in" }).click();
  await tab.page.getByRole("alert").getByText("this page needs the admin key").waitFor();
  await tab.page.getByLabel("Admin key").fill("gw-wrong");
  await tab.page.getByRole("button", { name: "Sign in" }).click();
  await tab.page.getByRole("alert").getByText("Incorrect API key").waitFor();
  await tab.page.getByLabel("Admin key").fill(ADMIN_KEY);
  await tab.page.getByRole("button", { name: "Sign in" }).click();
  await tab.page.getByRole("button", { name: "Create a key" }).waitFor();
  await tab.close();
});

test("a gateway without an admin key says how to get one", async () => {
  const plain = await startGateway({ environment: { GATEWRIGHT_SERVE_ADMIN_KEY: "" } });
  const tab = await browser.open(plain);
  await tab.signIn(KEY);
  await tab.go("usage");
  await tab.page.getByText("This gateway has no admin key.").waitFor();
  await tab.close();
  await plain.stop();
});

test("requests are listed while they run and when they have ended, without what was said", async () => {
  const slow = await startGateway({ arguments: ["--fault", "drip=40@create_chat_completion"] });
  const tab = await browser.open(slow);
  await tab.signIn(ADMIN_KEY);
  await tab.go("requests");
  await tab.page.getByText("No request is under way.").waitFor();
  const asked = slow.call("/v1/chat/completions", {
    method: "POST",
    body: question("model-sol", "Tell me about the secret-of-mine, at length."),
  });
  const underWay = tab.page.getByRole("region", { name: "1 request" });
  await underWay.getByText("create_chat_completion").waitFor();
  assert.equal((await asked).status, 200);
  const recent = tab.page.getByRole("region", { name: "The newest first" });
  await recent.getByText("200").waitFor({ timeout: 60_000 });
  const listed = await (await slow.call("/admin/requests", { key: ADMIN_KEY })).text();
  assert.doesNotMatch(listed, /secret-of-mine|canary/);
  await tab.close();
  await slow.stop();
});

test("a key is created, shown once, rotated and revoked", async () => {
  const tab = await browser.open(gateway, { expected: [REFUSED] });
  await tab.signIn(ADMIN_KEY);
  await tab.go("keys");
  await tab.page.getByRole("button", { name: "Create a key" }).click();
  const dialog = tab.page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("for tests");
  await dialog.getByLabel("Models").fill("model-s*, model-breeze");
  await dialog.getByLabel("Expires in days").fill("30");
  await dialog.getByText("Limits").click();
  await dialog.getByLabel("Requests a minute").fill("60");
  await dialog.getByRole("button", { name: "Create" }).click();
  const first = await dialog.locator(".secret").textContent();
  await dialog.getByRole("button", { name: "I have kept it" }).click();
  await dialog.waitFor({ state: "detached" });
  assert.doesNotMatch(await tab.page.content(), new RegExp(first));
  assert.equal(
    (
      await gateway.call("/v1/chat/completions", {
        key: first,
        method: "POST",
        body: question("model-sol", "hi"),
      })
    ).status,
    200,
  );
  assert.equal(
    (
      await gateway.call("/v1/chat/completions", {
        key: first,
        method: "POST",
        body: question("model-luna", "hi"),
      })
    ).status,
    403,
  );

  const row = tab.page.getByRole("row", { name: /for tests/ });
  await row.getByText("model-s*, model-breeze; all operations").waitFor();
  await row.getByText("requests a minute: 60").waitFor();
  await row.getByRole("button", { name: "Rotate" }).click();
  await dialog.getByLabel("Hours").fill("0");
  await dialog.getByRole("button", { name: "Rotate" }).click();
  const second = await dialog.locator(".secret").textContent();
  await tab.page.getByRole("button", { name: "I have kept it" }).click();
  assert.notEqual(first, second);
  assert.equal((await gateway.call("/v1/models", { key: first })).status, 401);
  assert.equal((await gateway.call("/v1/models", { key: second })).status, 200);

  await row.getByRole("button", { name: "Revoke" }).click();
  const revoke = dialog.getByRole("button", { name: "Revoke" });
  assert.ok(await revoke.isDisabled());
  await dialog.getByLabel("Type for tests to revoke it").fill("for tests");
  await revoke.click();
  // While a dialog is open, the rest of the page is hidden from those who cannot see.
  await dialog.waitFor({ state: "detached" });
  await row.waitFor({ state: "detached" });
  assert.equal((await gateway.call("/v1/models", { key: second })).status, 401);
  await tab.page.getByLabel("Show revoked keys").check();
  await row.getByText("revoked", { exact: true }).waitFor();

  // A name that is taken is refused in the dialog, which stays open.
  for (const refused of [false, true]) {
    await tab.page.getByRole("button", { name: "Create a key" }).click();
    await dialog.getByLabel("Name").fill("twice");
    await dialog.getByRole("button", { name: "Create" }).click();
    if (refused) await dialog.getByRole("alert").getByText("another key has the name").waitFor();
    else await dialog.getByRole("button", { name: "I have kept it" }).click();
  }
  await tab.page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await tab.close();
});

test("usage is drawn and told in numbers", async () => {
  for (let count = 0; count < 3; count += 1) {
    await gateway.call("/v1/chat/completions", { method: "POST", body: question("model-sol", "Say hello.") });
  }
  const tab = await browser.open(gateway);
  await tab.signIn(ADMIN_KEY);
  await tab.go("usage");
  await tab.page
    .getByRole("img", { name: /Tokens by day/ })
    .locator("rect")
    .first()
    .waitFor({ timeout: 20_000 });
  const row = tab.page.getByRole("row", { name: /default/ });
  await row.first().waitFor();
  await tab.page.getByLabel("By", { exact: true }).selectOption("model");
  await tab.page
    .getByRole("row", { name: /model-sol/ })
    .first()
    .waitFor();
  await tab.close();
});

test("upstreams show their models and breakers", async () => {
  const tab = await browser.open(gateway);
  await tab.signIn(ADMIN_KEY);
  await tab.go("upstreams");
  await tab.page
    .getByRole("row", { name: /model-sol/ })
    .getByText("requests pass")
    .waitFor();
  await tab.close();
});

test("a notification that failed is delivered again", async () => {
  let status = 500;
  let received = 0;
  const receiver = createServer((request, response) => {
    request.resume().on("end", () => {
      received += 1;
      response.writeHead(status).end();
    });
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => receiver.once("listening", resolve));
  const webhook_url = `http://127.0.0.1:${receiver.address().port}/hook?token=receiver-canary`;
  const body = { model: "video_model_4", prompt: "waves", duration: 3, resolution: "720p", webhook_url };
  assert.equal((await gateway.call("/v1/videos/generations", { method: "POST", body })).status, 200);
  const tab = await browser.open(gateway);
  await tab.signIn(ADMIN_KEY);
  await tab.go("webhooks");
  const row = tab.page.getByRole("row", { name: /msg_/ });
  await row.getByText("pending").waitFor({ timeout: 60_000 });
  assert.doesNotMatch(await tab.page.content(), /receiver-canary/);
  while (received === 0) await new Promise((resolve) => setTimeout(resolve, 50));
  status = 200;
  await row.getByRole("button", { name: "Redeliver" }).click();
  await row.getByText("delivered", { exact: true }).waitFor({ timeout: 30_000 });
  await tab.close();
  receiver.close();
});
