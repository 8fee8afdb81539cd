// The models page: the models that the key may use, searchable by name and kind, with their limits.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
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
  for (const kind of ["text", "image", "video"]) {
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
      .last()
      .textContent();
  const image = models.find(({ id }) => id === "image_model_2");
  assert.ok((await limits(image.id)).includes(image.limits.sizes.join(", ")));
  assert.ok((await limits(image.id)).includes(`up to ${image.limits.max_n} per request`));
  const video = models.find(({ id }) => id === "video_model_4");
  const { max_duration_s, resolutions, aspect_ratios } = video.limits;
  const told = await limits(video.id);
  for (const part of [`to ${max_duration_s} s`, resolutions.join(", "), aspect_ratios.join(", ")]) {
    assert.ok(told.includes(part), told);
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
  const asked = tab.page.waitForResponse((response) => response.url().endsWith("/console/session"));
  await tab.page.getByRole("button", { name: "Refresh" }).click();
  assert.equal((await asked).status(), 200);
  await tab.page.getByText("2 of 2 models").waitFor();
  await tab.close();
});
