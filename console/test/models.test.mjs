// The models page: the models that the key may use, searchable by name and kind, with their limits.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { judge } from "./judge.mjs";
import { ADMIN_KEY, KEY, startBrowser, startGateway } from "./support.mjs";

let gateway;
let browser;
before(async () => {
  [gateway, browser] = await Promise.all([startGateway(), startBrowser()]);
});
after(() => Promise.all([gateway.stop(), browser.close()]));

/** The ids shown on the page. */
const shown = (page) => page.locator("tbody th code").allTextContents();

test("models can be found by name and by kind", async () => {
  const { models } = await (await gateway.call("/console/session")).json();
  const ids = (wanted) => models.filter(wanted).map(({ id }) => id);
  const tab = await browser.open(gateway);
  const { page } = tab;
  await tab.signIn(KEY);
  await tab.go("models");
  await page.getByText(`${models.length} of ${models.length} models`).waitFor();
  assert.deepEqual(
    await shown(page),
    ids(() => true),
  );
  const caption = async (count) => {
    await page.getByText(`${count} of ${models.length} models`, { exact: true }).waitFor();
  };
  for (const kind of [
    "text",
    "embedding",
    "rerank",
    "moderation",
    "speech",
    "transcription",
    "image",
    "video",
  ]) {
    const wanted = ids((model) => model.kind === kind);
    assert.ok(wanted.length > 0, kind);
    await page.getByLabel("Kind").selectOption(kind);
    await caption(wanted.length);
    assert.deepEqual(await shown(page), wanted);
  }
  // Search and kind combine, and the search ignores case.
  await page.getByLabel("Search").fill("SOL");
  await page.getByText("No models match.").waitFor();
  await page.getByLabel("Kind").selectOption("");
  const named = ids(({ id, family, aliases }) =>
    [id, family, ...aliases].some((name) => name.includes("sol")),
  );
  await caption(named.length);
  assert.deepEqual(await shown(page), named);
  await page.getByLabel("Search").fill("family_two");
  const related = ids(({ family }) => family === "family_two");
  assert.ok(related.length > 0);
  await caption(related.length);
  assert.deepEqual(await shown(page), related);
  await tab.close();
});

test("models are shown with their limits", async () => {
  const { models } = await (await gateway.call("/console/session")).json();
  const tab = await browser.open(gateway);
  await tab.signIn(KEY);
  await tab.go("models");
  const limits = (id) =>
    tab.page
      .getByRole("row")
      .filter({ has: tab.page.getByRole("rowheader", { name: id, exact: true }) })
      .getByRole("cell")
      .nth(3)
      .textContent();
  const image = models.find(({ id }) => id === "image_model_2");
  assert.ok((await limits(image.id)).includes(image.limits.sizes.join(", ")));
  assert.ok((await limits(image.id)).includes(`up to ${image.limits.max_n} per request`));
  const embedding = models.find(({ kind }) => kind === "embedding");
  assert.equal(await limits(embedding.id), `up to ${embedding.limits.dimensions} dimensions`);
  // The playground has nothing for it.
  assert.equal(await tab.page.getByRole("link", { name: `Try ${embedding.id}` }).count(), 0);
  const video = models.find(({ id }) => id === "video_model_4");
  const { max_duration_s, resolutions, aspect_ratios } = video.limits;
  const shownLimits = await limits(video.id);
  for (const part of [`to ${max_duration_s} s`, resolutions.join(", "), aspect_ratios.join(", ")]) {
    assert.ok(shownLimits.includes(part), shownLimits);
  }
  await tab.close();
});

test("models are shown with their price and context, and answers with their cost", async (t) => {
  const priced = await startGateway({
    config: `
      [prices]
      currency = "EUR"
      [upstreams.here]
      kind = "simulator"
      [models.model-sol]
      targets = [{ upstream = "here", model = "model-sol", price = { input = 1000.0, output = 9000.0, tiers = [{ above = 10000, input = 1.0, output = 2.0 }] } }]
      [models.model-luna]
      targets = [{ upstream = "here", model = "model-luna" }]
    `,
  });
  t.after(() => priced.stop());
  const tab = await browser.open(priced);
  const { page } = tab;
  await tab.signIn(KEY);
  await tab.go("models");
  await page.getByRole("columnheader", { name: "Price (EUR)" }).waitFor();
  const cell = (id, text) =>
    page
      .getByRole("row")
      .filter({ has: page.getByRole("rowheader", { name: id, exact: true }) })
      .getByText(text, { exact: true })
      .waitFor();
  await cell(
    "model-sol",
    "1000.00 input, 9000.00 output per million tokens; more for prompts above 10,000 tokens",
  );
  await cell("model-luna", "free");
  await tab.go("playground");
  for (const protocol of ["Chat", "Responses", "Messages", "Native"]) {
    await page.getByRole("tab", { name: protocol }).click();
    await page.getByRole("textbox", { name: "Message" }).fill("Reply with exactly: hello");
    await page.getByRole("button", { name: "Send", exact: true }).click();
    const facts = page.getByRole("region", { name: "Conversation", exact: true }).locator("dl");
    const fact = (name) => facts.locator("div").filter({ hasText: name }).locator("dd").textContent();
    await facts.getByText("Cost").waitFor();
    await page.getByRole("button", { name: "Send", exact: true }).waitFor();
    const [input, output] = [
      Number.parseInt(await fact("Input"), 10),
      Number.parseInt(await fact("Output"), 10),
    ];
    assert.equal(await fact("Cost"), `${((input * 1000 + output * 9000) / 1e6).toFixed(2)} EUR`, protocol);
    await page.getByRole("button", { name: "Clear" }).click();
  }
  await tab.close();
});

test("a key sees the models in its scope, and a refresh fetches them again", async () => {
  const body = { name: "narrow", scopes: { models: ["model-sol", "image_model_2"] } };
  const made = await gateway.call("/admin/keys", { key: ADMIN_KEY, method: "POST", body });
  const tab = await browser.open(gateway);
  await tab.signIn((await made.json()).secret);
  await tab.go("models");
  await tab.page.getByText("2 of 2 models").waitFor();
  assert.deepEqual((await shown(tab.page)).sort(), ["image_model_2", "model-sol"]);
  const refreshed = tab.page.waitForResponse((response) => response.url().endsWith("/console/session"));
  await tab.page.getByRole("button", { name: "Refresh" }).click();
  assert.equal((await refreshed).status(), 200);
  await tab.page.getByText("2 of 2 models").waitFor();
  await tab.close();
});

test("a model is tried in the playground", async () => {
  const tab = await browser.open(gateway);
  const { page } = tab;
  await tab.signIn(KEY);
  for (const [id, heading] of [
    ["model-breeze", "Settings"],
    ["image_model_2", "Request"],
    ["video_model_4", "Request"],
  ]) {
    await tab.go("models");
    await page.getByRole("link", { name: `Try ${id}` }).click();
    await page.getByRole("heading", { name: heading }).waitFor();
    assert.equal(await page.getByLabel("Model", { exact: true }).inputValue(), id);
  }
  await tab.close();
});

test("the playground says why it has no model to ask", async () => {
  const issue = async (name, models) => {
    const made = await gateway.call("/admin/keys", {
      key: ADMIN_KEY,
      method: "POST",
      body: { name, scopes: { models } },
    });
    return (await made.json()).secret;
  };
  const tab = await browser.open(gateway);
  const { page } = tab;
  await tab.signIn(await issue("images alone", ["image_model_2"]));
  await page.getByText("Your key can use no text model: the gateway has none").waitFor();
  await page.getByRole("textbox", { name: "Message", exact: true }).fill("hi");
  assert.equal(
    await page.getByRole("button", { name: "Send", exact: true }).getAttribute("aria-disabled"),
    "true",
  );
  await judge(tab, "no text model");
  await tab.go("playground/videos");
  await page.getByText("Your key can use no video model").waitFor();
  await page.getByRole("button", { name: "Sign out" }).click();
  await tab.signIn(await issue("not over responses", ["model-breeze"]));
  await tab.go("playground");
  await page.getByRole("tab", { name: "Responses" }).click();
  await page.getByText("None of your key's text models is available over the Responses protocol.").waitFor();
  await tab.close();
});
