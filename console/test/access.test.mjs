// Who has no mouse: everything is done by the keyboard alone. axe.test.mjs judges what is shown.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ADMIN_KEY, BLOCKED, KEY, startBrowser, startGateway } from "./support.mjs";

let gateway;
let browser;
before(async () => {
  [gateway, browser] = await Promise.all([startGateway(), startBrowser()]);
  for (const model of ["model-sol", "model-breeze"]) {
    const body = { model, messages: [{ role: "user", content: "Say hello." }] };
    await gateway.call("/v1/chat/completions", { method: "POST", body });
  }
  await gateway.call("/admin/keys", { key: ADMIN_KEY, method: "POST", body: { name: "one" } });
});
after(() => Promise.all([gateway.stop(), browser.close()]));

/**
 * Presses Tab until something has the focus and keeps it, and fails if it is never reached or does not show it. The page
 * itself may move the focus: to the heading of a page that was just opened, and into and out of a dialog.
 */
async function reach(page, name) {
  const focused = () =>
    page.evaluate(() => {
      const element = document.activeElement;
      const label = element?.labels?.[0]?.textContent;
      const text = label ?? element?.getAttribute("aria-label") ?? element?.textContent ?? "";
      return { text: text.trim(), outline: getComputedStyle(element).outlineStyle };
    });
  const settled = () =>
    page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 100))));
  for (let presses = 0; presses < 120; presses += 1) {
    await page.keyboard.press("Tab");
    if ((await focused()).text !== name) continue;
    await settled();
    const { text, outline } = await focused();
    if (text !== name) continue;
    assert.notEqual(outline, "none", `${name} shows that it has the focus`);
    return;
  }
  assert.fail(`${name} is not reached`);
}

/** Opens a page with keys, by the keyboard alone. */
async function signInByKeyboard(tab, ...keys) {
  for (const key of keys) {
    if (key === ADMIN_KEY) await tab.go("keys");
    await reach(tab.page, key === ADMIN_KEY ? "Admin key" : "Key");
    await tab.page.keyboard.type(key);
    await tab.page.keyboard.press("Enter");
    const who = tab.page.locator(".who").filter({ hasText: key === ADMIN_KEY ? "admin key" : "API key" });
    await who.waitFor({ state: "attached" });
  }
}

test("the page is used by the keyboard alone", async () => {
  const tab = await browser.open(gateway);
  const { page } = tab;
  const to = (name) => reach(page, name);
  await signInByKeyboard(tab, KEY);
  await page.getByRole("heading", { name: "Playground" }).waitFor();
  await page.evaluate(() => document.activeElement?.blur());
  await to("Skip to the page");
  await page.keyboard.press("Enter");
  await to("Chat");
  await to("Chat");
  await page.keyboard.press("ArrowRight");
  await page.getByRole("tab", { name: "Responses", selected: true }).waitFor();
  await to("Message");
  await page.keyboard.type("Reply with exactly: by hand");
  await page.keyboard.press("Enter");
  await page.getByRole("log").getByText("by hand", { exact: true }).waitFor();

  await signInByKeyboard(tab, ADMIN_KEY);
  await page.getByRole("button", { name: "Create a key" }).waitFor();
  await to("Create a key");
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog");
  await dialog.waitFor();
  // The focus stays in the dialog, and comes back when it is closed.
  for (let presses = 0; presses < 12; presses += 1) {
    await page.keyboard.press("Tab");
    assert.ok(
      await page.evaluate(() => document.querySelector("[role=dialog]").contains(document.activeElement)),
    );
  }
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await page.waitForFunction(() => document.activeElement?.textContent === "Create a key");
  // Also to whoever goes on before the dialog has the focus.
  for (let turn = 0; turn < 5; turn += 1) {
    await Promise.all([page.keyboard.press("Enter"), page.keyboard.press("Tab")]);
    await dialog.waitFor();
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    await page.waitForFunction(() => document.activeElement?.textContent === "Create a key");
  }
  await tab.close();
});

test("files are chosen and taken away by the keyboard alone", async () => {
  const tab = await browser.open(gateway, { expected: [BLOCKED] });
  const { page } = tab;
  // The browser is told to hand choosers over as soon as somebody listens: just before a key is pressed would be too late.
  page.on("filechooser", () => {});
  await signInByKeyboard(tab, KEY);
  const choose = async (name, file) => {
    await reach(page, name);
    const opened = page.waitForEvent("filechooser");
    await page.keyboard.press("Enter");
    await (await opened).setFiles(file);
  };
  const png =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
  await choose("Add images", { name: "dot.png", mimeType: "image/png", buffer: Buffer.from(png, "base64") });
  await reach(page, "Remove dot.png");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Remove dot.png" }).waitFor({ state: "detached" });

  await tab.go("reports");
  const report = new URL("../../examples/reports/good.json", import.meta.url).pathname;
  await choose("Compare with an older one", report);
  await page.getByText("Now open the newer one.").waitFor();
  await page.evaluate(() => document.activeElement?.blur());
  await choose("Open a report", report);
  await page.frameLocator("iframe.report").getByText("Nothing got worse").waitFor();
  await reach(page, "Close");
  await page.keyboard.press("Space");
  await page.locator("iframe.report").waitFor({ state: "detached" });
  await tab.close();
});

test("an operation is found and tried by the keyboard alone", async () => {
  const tab = await browser.open(gateway);
  const { page } = tab;
  await signInByKeyboard(tab, KEY);
  await reach(page, "API reference");
  await page.keyboard.press("Enter");
  await page.getByRole("navigation", { name: "Operations" }).waitFor();
  await reach(page, "Look up a model");
  await page.keyboard.press("Enter");
  await reach(page, "model");
  await page.keyboard.press("Control+a");
  await page.keyboard.type("model-sol");
  await page.keyboard.press("Enter");
  await page.getByRole("region", { name: "The answer" }).getByText('"id": "model-sol"').waitFor();
  await reach(page, "Send GET");
  await reach(page, "The answer");
  await tab.close();
});

test("a key is rotated and revoked by the keyboard alone", async () => {
  await gateway.call("/admin/keys", { key: ADMIN_KEY, method: "POST", body: { name: "by hand" } });
  const tab = await browser.open(gateway);
  const { page } = tab;
  await signInByKeyboard(tab, ADMIN_KEY);
  const dialog = page.getByRole("dialog");
  await reach(page, "Rotate by hand");
  await page.keyboard.press("Enter");
  await dialog.waitFor();
  await reach(page, "Hours for which the old secret works");
  await page.keyboard.press("Control+a");
  await page.keyboard.type("0");
  await reach(page, "Rotate");
  await page.keyboard.press("Space");
  const secret = await dialog.locator(".secret").textContent();
  await reach(page, "I have kept it");
  await page.keyboard.press("Enter");
  await dialog.waitFor({ state: "detached" });
  assert.equal((await gateway.call("/v1/models", { key: secret })).status, 200);

  await reach(page, "Revoke by hand");
  await page.keyboard.press("Enter");
  await dialog.waitFor();
  await reach(page, "Type by hand to revoke it");
  await page.keyboard.type("by hand");
  await reach(page, "Revoke");
  await page.keyboard.press("Enter");
  await dialog.waitFor({ state: "detached" });
  await page.getByRole("row", { name: /by hand/ }).waitFor({ state: "detached" });
  assert.equal((await gateway.call("/v1/models", { key: secret })).status, 401);
  await reach(page, "Show revoked keys");
  const again = page.waitForRequest((request) => request.url().endsWith("/admin/keys?revoked=true"));
  await page.keyboard.press("Space");
  await again;
  await tab.close();
});

test("lists are filtered by the keyboard alone", async () => {
  const tab = await browser.open(gateway);
  const { page } = tab;
  await signInByKeyboard(tab, KEY, ADMIN_KEY);
  await tab.go("models");
  await reach(page, "Search");
  await page.keyboard.type("model_2");
  await reach(page, "Kind");
  await page.keyboard.press("i");
  await page.getByText(/^1 of \d+ models$/).waitFor();
  await page.getByRole("rowheader", { name: "image_model_2" }).waitFor();
  for (const [path, filter, key, asked] of [
    ["usage", "Days", "9", "/admin/usage"],
    ["usage", "By", "m", "by=day,model"],
    ["tasks", "Status", "f", "/admin/tasks?status=failed"],
    ["webhooks", "Status", "d", "/admin/webhooks?status=delivered"],
  ]) {
    await tab.go(path);
    await page.getByText("Loading …").waitFor({ state: "detached" });
    await page.evaluate(() => document.activeElement?.blur());
    await reach(page, filter);
    const again = page.waitForRequest((request) => decodeURIComponent(request.url()).includes(asked));
    await page.keyboard.press(key);
    await again;
  }
  await tab.close();
});

test("the menu of a small screen is used by the keyboard alone", async () => {
  const tab = await browser.open(gateway, { width: 360 });
  const { page } = tab;
  await signInByKeyboard(tab, KEY);
  const menu = page.getByRole("button", { name: "Menu" });
  const isOpen = () => menu.getAttribute("aria-expanded");
  await page.evaluate(() => document.activeElement?.blur());
  await reach(page, "Menu");
  assert.equal(await isOpen(), "false");
  await page.keyboard.press("Enter");
  await page.getByRole("link", { name: "Video tasks" }).waitFor();
  assert.equal(await isOpen(), "true");
  await reach(page, "Models");
  await page.keyboard.press("Enter");
  // The page that was chosen begins at its heading, and the menu is out of the way.
  await page.getByRole("heading", { name: "Models", level: 1 }).waitFor();
  await page.waitForFunction(() => document.activeElement?.textContent === "Models");
  assert.equal(await isOpen(), "false");
  await page.getByRole("link", { name: "Video tasks" }).waitFor({ state: "hidden" });
  await tab.close();
});

test("a chosen scheme wins over that of the system", async () => {
  const tab = await browser.open(gateway, { scheme: "light" });
  const paper = () => tab.page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await paper();
  await tab.page.getByLabel("Theme").selectOption("dark");
  const dark = await paper();
  assert.notEqual(light, dark);
  await tab.page.reload();
  await tab.page.getByLabel("Theme").waitFor();
  assert.equal(await paper(), dark);
  await tab.page.getByLabel("Theme").selectOption("system");
  assert.equal(await paper(), light);
  await tab.close();
});
