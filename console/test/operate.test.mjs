// The operator pages: requests, usage, upstreams, webhooks, keys.
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { ADMIN_KEY, KEY, REFUSED, receiveNotifications, startBrowser, startGateway } from "./support.mjs";

let gateway;
let browser;
let data;
before(async () => {
  // Revoked keys stay listed only with a data folder.
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

test("operator pages ask for the admin key, and reject another key with a message", async () => {
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

test("a gateway without an admin key explains how to set one", async () => {
  const plain = await startGateway({ environment: { GATEWRIGHT_SERVE_ADMIN_KEY: "" } });
  const tab = await browser.open(plain);
  await tab.signIn(KEY);
  await tab.go("usage");
  await tab.page.getByText("This gateway has no admin key.").waitFor();
  await tab.close();
  await plain.stop();
});

test("requests are listed while they run and after they end, without their contents", async () => {
  const slow = await startGateway({ arguments: ["--fault", "drip=40@create_chat_completion"] });
  const tab = await browser.open(slow);
  await tab.signIn(ADMIN_KEY);
  await tab.go("requests");
  await tab.page.getByText("No requests in progress.").waitFor();
  const asked = slow.call("/v1/chat/completions", {
    method: "POST",
    body: question("model-sol", "Tell me about the secret-of-mine, at length."),
  });
  const underWay = tab.page.getByRole("region", { name: "1 request" });
  await underWay.getByText("create_chat_completion").waitFor();
  assert.equal((await asked).status, 200);
  const recent = tab.page.getByRole("region", { name: "Newest first" });
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
  await dialog.getByLabel("Report the upstream in x-gatewright-upstream").check();
  await dialog.getByLabel("Expires after (days)").fill("30");
  await dialog.getByText("Limits").click();
  await dialog.getByLabel("Requests per minute").fill("60");
  await dialog.getByLabel("File storage in bytes").fill("5000000");
  await dialog.getByRole("button", { name: "Create" }).click();
  const first = await dialog.locator(".secret").textContent();
  await dialog.getByRole("button", { name: "I've saved it" }).click();
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
  await row.getByText("model-s*, model-breeze; all operations; sees the upstream").waitFor();
  await row.getByText("requests per minute: 60; file storage in bytes: 5000000", { exact: true }).waitFor();
  await row.getByRole("button", { name: "Rotate" }).click();
  await dialog.getByLabel("Hours").fill("0");
  await dialog.getByRole("button", { name: "Rotate" }).click();
  const second = await dialog.locator(".secret").textContent();
  await tab.page.getByRole("button", { name: "I've saved it" }).click();
  assert.notEqual(first, second);
  assert.equal((await gateway.call("/v1/models", { key: first })).status, 401);
  assert.equal((await gateway.call("/v1/models", { key: second })).status, 200);

  await row.getByRole("button", { name: "Revoke" }).click();
  const revoke = dialog.getByRole("button", { name: "Revoke" });
  assert.ok(await revoke.isDisabled());
  await dialog.getByLabel("Type for tests to revoke it").fill("for tests");
  await revoke.click();
  // While a dialog is open, the rest of the page is hidden from screen readers.
  await dialog.waitFor({ state: "detached" });
  await row.waitFor({ state: "detached" });
  assert.equal((await gateway.call("/v1/models", { key: second })).status, 401);
  await tab.page.getByLabel("Show revoked keys").check();
  await row.getByText("revoked", { exact: true }).waitFor();

  // A name that is taken is rejected in the dialog, which stays open.
  for (const refused of [false, true]) {
    await tab.page.getByRole("button", { name: "Create a key" }).click();
    await dialog.getByLabel("Name").fill("twice");
    await dialog.getByRole("button", { name: "Create" }).click();
    if (refused) await dialog.getByRole("alert").getByText("another key has the name").waitFor();
    else await dialog.getByRole("button", { name: "I've saved it" }).click();
  }
  await tab.page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await tab.close();
});

test("a key scoped to operations may call only those", async () => {
  const tab = await browser.open(gateway);
  await tab.signIn(ADMIN_KEY);
  await tab.go("keys");
  await tab.page.getByRole("button", { name: "Create a key" }).click();
  const dialog = tab.page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("lists and counts");
  await dialog.getByLabel("Operations").fill("list_models, create_message");
  await dialog.getByRole("button", { name: "Create" }).click();
  const secret = await dialog.locator(".secret").textContent();
  await dialog.getByRole("button", { name: "I've saved it" }).click();
  const row = tab.page.getByRole("row", { name: /lists and counts/ });
  await row.getByText("all models; list_models, create_message").waitFor();
  assert.equal((await gateway.call("/v1/models", { key: secret })).status, 200);
  const body = question("model-sol", "hi");
  const message = { key: secret, method: "POST", body: { ...body, max_tokens: 9 } };
  assert.equal((await gateway.call("/v1/messages", message)).status, 200);
  const chat = { key: secret, method: "POST", body };
  assert.equal((await gateway.call("/v1/chat/completions", chat)).status, 403);
  await tab.close();
});

test("usage is shown in charts and in numbers", async () => {
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
  await tab.page.getByLabel("Group by", { exact: true }).selectOption("model");
  await tab.page
    .getByRole("row", { name: /model-sol/ })
    .first()
    .waitFor();
  await tab.close();
});

test("the cost is charted if the configuration has prices", async () => {
  const priced = await startGateway({
    config: `
      [upstreams.here]
      kind = "simulator"
      [models.model-sol]
      targets = [{ upstream = "here", model = "model-sol", price = { input = 1000.0, output = 9000.0 } }]
    `,
  });
  const answer = await priced.call("/v1/chat/completions", {
    method: "POST",
    body: question("model-sol", "Say hello."),
  });
  assert.equal(answer.status, 200);
  const { usage } = await answer.json();
  const tab = await browser.open(priced);
  await tab.signIn(ADMIN_KEY);
  await tab.go("usage");
  const chart = tab.page.getByRole("img", { name: /Cost by day/ });
  await chart.locator("rect").first().waitFor({ timeout: 20_000 });
  const cost = ((usage.prompt_tokens * 1000 + usage.completion_tokens * 9000) / 1e6).toFixed(2);
  assert.match(await chart.locator("rect").first().textContent(), new RegExp(`default: ${cost}$`));
  const row = tab.page.getByRole("row", { name: /default/ });
  assert.equal(await row.getByRole("cell").last().textContent(), cost);
  await tab.close();
  await priced.stop();
});

test("upstreams show their models and breakers", async () => {
  const tab = await browser.open(gateway);
  await tab.signIn(ADMIN_KEY);
  await tab.go("upstreams");
  await tab.page
    .getByRole("row", { name: /model-sol/ })
    .getByText("requests go through")
    .waitFor();
  await tab.close();
});

test("a failing upstream is skipped, and the page shows it", async () => {
  // Nothing listens on a port that was just released.
  const away = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => away.once("listening", resolve));
  const { port } = away.address();
  await new Promise((resolve) => away.close(resolve));
  const failing = await startGateway({
    config: `
      [upstreams.away]
      kind = "chat"
      base_url = "http://127.0.0.1:${port}/v1"
      key = { env = "UPSTREAM_KEY" }
      [models.model-sol]
      targets = [{ upstream = "away", model = "theirs" }]
    `,
    environment: { UPSTREAM_KEY: "gw-console-upstream-canary" },
  });
  const tab = await browser.open(failing);
  await tab.signIn(ADMIN_KEY);
  await tab.go("upstreams");
  const row = tab.page
    .getByRole("region", { name: "away", exact: true })
    .getByRole("row", { name: /theirs/ });
  await row.getByText("requests go through").waitFor();
  for (let count = 0; count < 8; count += 1) {
    const asked = { method: "POST", body: question("model-sol", "hi") };
    assert.ok((await failing.call("/v1/chat/completions", asked)).status >= 500);
  }
  await row.getByText("no requests are sent").waitFor();
  assert.doesNotMatch(await tab.page.content(), /upstream-canary/);
  // After the pause, one trial request decides.
  await row.getByText("one trial request").waitFor();
  await tab.close();
  await failing.stop();
});

test("a video task is shown from its request to its end, without its prompt", async () => {
  const tab = await browser.open(gateway);
  await tab.signIn(ADMIN_KEY);
  await tab.go("tasks");
  await tab.page.getByText("No tasks found.").waitFor();
  const ask = async (prompt) => {
    const body = { model: "video_model_4", prompt, duration: 3, resolution: "720p" };
    const answer = await gateway.call("/v1/videos/generations", { method: "POST", body });
    assert.equal(answer.status, 200);
    return (await answer.json()).id;
  };
  const made = await ask("waves-of-mine on a beach");
  const failed = await ask("[fail: no sea today] waves-of-mine");
  const row = (id) => tab.page.getByRole("row", { name: new RegExp(id) });
  await row(made).getByText("completed", { exact: true }).waitFor();
  assert.match(await row(made).textContent(), /video_model_4default/);
  await row(failed).getByText("failed", { exact: true }).waitFor();
  await row(failed).getByText("no sea today").waitFor();
  await tab.page.getByLabel("Status").selectOption("failed");
  await row(made).waitFor({ state: "detached" });
  await row(failed).waitFor();
  assert.doesNotMatch(await tab.page.content(), /waves-of-mine/);
  await tab.page.getByLabel("Status").selectOption("pending");
  await tab.page.getByText("No tasks found.").waitFor();
  await tab.close();
});

test("a failed notification is delivered again", async (t) => {
  const receiver = await receiveNotifications(t, 500);
  const webhook_url = `${receiver.url}?token=receiver-canary`;
  const body = { model: "video_model_4", prompt: "waves", duration: 3, resolution: "720p", webhook_url };
  assert.equal((await gateway.call("/v1/videos/generations", { method: "POST", body })).status, 200);
  const tab = await browser.open(gateway);
  await tab.signIn(ADMIN_KEY);
  await tab.go("webhooks");
  const row = tab.page.getByRole("row", { name: /msg_/ });
  await row.getByText("pending").waitFor({ timeout: 60_000 });
  assert.doesNotMatch(await tab.page.content(), /receiver-canary/);
  while (receiver.received === 0) await new Promise((resolve) => setTimeout(resolve, 50));
  receiver.status = 200;
  await row.getByRole("button", { name: "Redeliver" }).click();
  await row.getByText("delivered", { exact: true }).waitFor({ timeout: 30_000 });
  await tab.close();
});
