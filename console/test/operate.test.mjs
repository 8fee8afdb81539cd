// The operator pages: requests, usage, upstreams, webhooks, keys.
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { judge } from "./judge.mjs";
import {
  ADMIN_KEY,
  KEY,
  REFUSED,
  receiveNotifications,
  startBrowser,
  startGateway,
  startWithProvider,
} from "./support.mjs";

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
  const answer = slow.call("/v1/chat/completions", {
    method: "POST",
    body: question("model-sol", "Tell me about the secret-of-mine, at length."),
  });
  const underWay = tab.page.getByRole("region", { name: "1 request" });
  await underWay.getByText("create_chat_completion").waitFor();
  assert.equal((await answer).status, 200);
  const recent = tab.page.getByRole("region", { name: "Newest first" });
  await recent.getByText("200").waitFor({ timeout: 60_000 });
  const listed = await (await slow.call("/admin/requests", { key: ADMIN_KEY })).text();
  assert.doesNotMatch(listed, /secret-of-mine|canary/);
  await tab.close();
  await slow.stop();
});

test("requests are filtered, and one is shown with its tokens, cost and error", async (t) => {
  const priced = await startGateway({
    config: `
      [prices]
      currency = "EUR"
      [upstreams.here]
      kind = "simulator"
      [models.model-sol]
      targets = [{ upstream = "here", model = "model-sol", price = { input = 1000.0, output = 9000.0 } }]
    `,
  });
  t.after(() => priced.stop());
  const ask = (body) => priced.call("/v1/chat/completions", { method: "POST", body });
  const { usage } = await (await ask(question("model-sol", "Say hello."))).json();
  assert.equal((await ask(question("model-none", "Say hello."))).status, 404);
  const tab = await browser.open(priced);
  const { page } = tab;
  await tab.signIn(ADMIN_KEY);
  await tab.go("requests");
  const row = (model) => page.getByRole("row").filter({ hasText: model });
  await row("model-sol").waitFor();
  await row("model-none").getByText("model_not_found").waitFor();
  const cost = ((usage.prompt_tokens * 1000 + usage.completion_tokens * 9000) / 1e6).toFixed(2);
  const facts = page.locator("main > .stats");
  await facts.getByText("1 (50 %)").waitFor();
  await facts.getByText(`${cost} EUR`, { exact: true }).waitFor();
  await row("model-sol").getByText(`${usage.prompt_tokens} → ${usage.completion_tokens}`).waitFor();

  await page.getByLabel("Status").selectOption("failed");
  await row("model-sol").waitFor({ state: "detached" });
  await page.getByText("1 of 2, newest first").waitFor();
  await page.getByLabel("Model").selectOption("model-sol");
  await page.getByText("No finished requests match.").waitFor();
  await page.getByLabel("Status").selectOption("");
  await row("model-sol").waitFor();
  await page.getByLabel("Model").selectOption("");
  for (const [text, shown, hidden] of [
    ["NOT_FOUND", "model-none", "model-sol"],
    ["here", "model-sol", "model-none"],
  ]) {
    await page.getByLabel("Search").fill(text);
    await row(hidden).waitFor({ state: "detached" });
    await row(shown).waitFor();
  }
  await page.getByLabel("Search").fill("");
  await page.getByLabel("Upstream").selectOption("here");
  await row("model-none").waitFor({ state: "detached" });
  await page.getByLabel("Key").selectOption("default");

  await row("model-sol")
    .getByRole("button", { name: /^Details/ })
    .click();
  const dialog = page.getByRole("dialog");
  for (const fact of [`${cost} EUR`, "create_chat_completion", "complete", "here", "default"]) {
    await dialog.getByText(fact, { exact: true }).waitFor();
  }
  // It stays, although the list is fetched again.
  const again = page.waitForResponse((response) => response.url().endsWith("/admin/requests"));
  await again;
  await dialog.getByRole("button", { name: "Close" }).click();
  await dialog.waitFor({ state: "detached" });
  await tab.close();
});

test("the content of a request is shown if the gateway keeps it", async (t) => {
  const keeping = await startGateway({
    config: "[observe]\ncontent_requests = 5\n",
  });
  t.after(() => keeping.stop());
  const request = { method: "POST", body: question("model-sol", "Reply with exactly: <b>kept</b>") };
  assert.equal((await keeping.call("/v1/chat/completions", request)).status, 200);
  const tab = await browser.open(keeping);
  const { page } = tab;
  await tab.signIn(ADMIN_KEY);
  await tab.go("requests");
  await page.getByText("Prompts and answers of the newest 5 requests are kept for a while").waitFor();
  await page.getByRole("button", { name: /^Details/ }).click();
  const dialog = page.getByRole("dialog");
  await dialog
    .getByRole("region", { name: "Text of the request body" })
    .getByText('"content": "Reply with exactly: <b>kept</b>"')
    .waitFor();
  await dialog
    .getByRole("region", { name: "Text of the response body" })
    .getByText('"content": "<b>kept</b>"')
    .waitFor();
  await judge(tab, "the content of a request");
  await tab.close();
});

test("a key is created, shown once, rotated and revoked", async () => {
  const tab = await browser.open(gateway, { expected: [REFUSED] });
  await tab.signIn(ADMIN_KEY);
  await tab.go("keys");
  await tab.page.getByRole("button", { name: "Create a key" }).click();
  const dialog = tab.page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("for tests");
  await dialog.getByText("Models: all").click();
  await dialog.getByLabel("model-breeze").check();
  const patterns = dialog.getByLabel("Other ids and patterns");
  await patterns.fill("model-s*, model-none, none-*");
  await dialog.getByText("This gateway has no model for model-none, none-*.").waitFor();
  await patterns.fill("model-s*");
  await dialog.getByText("This gateway has no model").waitFor({ state: "detached" });
  await dialog.getByText("Models: 2 choices").waitFor();
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
  await row.getByText("model-breeze, model-s*; all operations; sees the upstream").waitFor();
  await row.getByText("requests per minute: 60; file storage in bytes: 5000000", { exact: true }).waitFor();
  await row.getByText("not used", { exact: true }).waitFor();
  // A change keeps the secret, and the members that the form doesn't change.
  await row.getByRole("button", { name: "Edit" }).click();
  await dialog.getByText("Models: 2 choices").waitFor();
  await dialog.getByLabel("Name").fill("for tests, too");
  await dialog.getByText("Limits").click();
  assert.equal(await dialog.getByLabel("Requests per minute").inputValue(), "60");
  await dialog.getByLabel("Requests per minute").fill("61");
  await dialog.getByLabel("Never expires").check();
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.waitFor({ state: "detached" });
  const changed = await (await gateway.call("/admin/keys/for%20tests,%20too", { key: ADMIN_KEY })).json();
  assert.deepEqual([changed.limits.requests_per_minute, changed.limits.file_bytes], [61, 5_000_000]);
  assert.deepEqual([changed.expires, changed.scopes.models], [null, ["model-breeze", "model-s*"]]);
  await row.getByRole("button", { name: "Edit" }).click();
  await dialog.getByLabel("Name").fill("for tests");
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.waitFor({ state: "detached" });

  // The gateway writes usage within a second.
  let own;
  while (own === undefined) {
    const { usage } = await (await gateway.call("/admin/usage?by=key", { key: ADMIN_KEY })).json();
    own = usage.find(({ name }) => name === "for tests");
  }
  await row.getByRole("button", { name: "Rotate" }).click();
  await dialog.getByLabel("Hours").fill("0");
  await dialog.getByRole("button", { name: "Rotate" }).click();
  const second = await dialog.locator(".secret").textContent();
  await tab.page.getByRole("button", { name: "I've saved it" }).click();
  assert.notEqual(first, second);
  // The list was read again.
  await row.getByText(`${own.input_tokens + own.output_tokens} tokens`).waitFor();
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
  await dialog.getByText("Operations: all").click();
  for (const operation of ["list_models", "create_message"]) {
    await dialog.getByLabel(operation, { exact: true }).check();
  }
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
  const row = tab.page.getByRole("region", { name: "By day and key" }).getByRole("row", { name: /default/ });
  assert.equal(await row.getByRole("cell").last().textContent(), cost);
  await tab.close();
  await priced.stop();
});

test("usage has totals, own dates, a file, and errors and latency, also of the newest requests", async () => {
  await gateway.call("/v1/chat/completions", { method: "POST", body: question("model-sol", "Say hello.") });
  await gateway.call("/v1/chat/completions", { method: "POST", body: question("model-none", "Say hello.") });
  const tab = await browser.open(gateway);
  const { page } = tab;
  await tab.signIn(ADMIN_KEY);
  await tab.go("usage");
  await page.getByLabel("Group by", { exact: true }).selectOption("model");
  const total = page.getByRole("region", { name: "Total by model" }).getByRole("row", { name: /model-sol/ });
  await total.waitFor({ timeout: 20_000 });
  await total.getByText(/^[\d.]+ m?s$/).waitFor();
  // Failed requests whose model doesn't exist.
  await page
    .getByRole("region", { name: "Total by model" })
    .getByRole("row", { name: /^none/ })
    .getByText("(100 %)")
    .waitFor({ timeout: 20_000 });
  const latest = page.getByRole("region", { name: /^Errors and latency of the newest/ });
  await latest
    .getByRole("row", { name: /model-none/ })
    .getByText("(100 %)")
    .waitFor();
  await latest
    .getByRole("row", { name: /model-sol/ })
    .getByText(/ms|s$/)
    .first()
    .waitFor();
  const facts = page.locator("main > .stats");
  await facts.getByText("Output tokens").waitFor();
  await facts.getByText("Failed requests").waitFor();
  await facts.getByText("Mean latency").waitFor();

  const saving = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download CSV" }).click();
  const download = await saving;
  assert.match(download.suggestedFilename(), /^usage-\d{4}-\d\d-\d\d-to-\d{4}-\d\d-\d\d-by-model\.csv$/);
  const [head, ...lines] = (await readFile(await download.path(), "utf8")).trimEnd().split("\r\n");
  assert.ok(head.startsWith("day,key,name,model,upstream,requests,"), head);
  const row = lines.map((line) => line.split(",")).find((cells) => cells[3] === "model-sol");
  assert.equal(row.length, head.split(",").length);
  assert.ok(Number(row[5]) > 0, row.join());
  const count = (cells, name) => Number(cells[head.split(",").indexOf(name)]);
  assert.ok(count(row, "timed") > 0, row.join());
  const rejected = lines.map((line) => line.split(",")).find((cells) => cells[3] === "");
  assert.ok(count(rejected, "failed") > 0 && count(rejected, "requests") === 0, rejected.join());

  await page.getByLabel("Days").selectOption("own");
  await page.getByLabel("From").fill("2020-01-01");
  await page.getByLabel("To", { exact: true }).fill("2020-01-31");
  await page.getByText("No usage in this period.").waitFor();
  await page.getByLabel("To", { exact: true }).fill("2019-12-31");
  await page.getByRole("alert").getByText("Choose a first and a last day").waitFor();
  const today = new Date().toISOString().slice(0, 10);
  await page.getByLabel("From").fill(today);
  await page.getByLabel("To", { exact: true }).fill(today);
  await total.waitFor();
  await tab.close();
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

test("an upstream is shown with its address and latency, and is tested", async (t) => {
  const { gateway: through } = await startWithProvider(t, [["one"]]);
  const request = { method: "POST", body: { ...question("model-test", "A"), stream: true } };
  await (await through.call("/v1/chat/completions", request)).text();
  const tab = await browser.open(through);
  await tab.signIn(ADMIN_KEY);
  await tab.go("upstreams");
  const card = tab.page.getByRole("region", { name: "test", exact: true });
  await card.getByText(/^http:\/\/127\.0\.0\.1:\d+\/v1$/).waitFor();
  await card.getByText(/^1 request lately · 0 failed · first byte \d+ ms/).waitFor();
  await card.getByRole("button", { name: "Test test" }).click();
  await card
    .getByRole("status")
    .getByText(/^ok 1 model after \d+ ms$/)
    .waitFor();
  await tab.close();
});

test("the admin key alone opens every page, and its usage has a name of its own", async () => {
  const tab = await browser.open(gateway);
  const { page } = tab;
  await tab.signIn(ADMIN_KEY);
  await page.getByRole("textbox", { name: "Message" }).fill("Reply with exactly: operated");
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await page.getByRole("log").getByText("operated", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Send", exact: true }).waitFor();
  // Its conversation survives a reload, as those of other keys.
  await page.reload();
  await page.getByRole("log").getByText("operated", { exact: true }).waitFor();
  await tab.go("reference/retrieve_model");
  await page.getByLabel("model", { exact: true }).fill("model-sol");
  await page.getByRole("button", { name: "Send GET" }).click();
  await page.getByRole("region", { name: "The response" }).getByText('"id": "model-sol"').waitFor();
  await tab.go("usage");
  await page
    .getByRole("region", { name: "Total by key" })
    .getByRole("row", { name: /^admin / })
    .waitFor({ timeout: 20_000 });
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
    const request = { method: "POST", body: question("model-sol", "hi") };
    assert.ok((await failing.call("/v1/chat/completions", request)).status >= 500);
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
