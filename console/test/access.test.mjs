// Who cannot see, who has no mouse, who has a small screen: every page, in both schemes and at two widths.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import axe from "axe-core";
import { ADMIN_KEY, KEY, startBrowser, startGateway } from "./support.mjs";

const PAGES = [
  "playground",
  "playground/images",
  "playground/videos",
  "models",
  "reports",
  "reference",
  "reference/create_response",
  "requests",
  "usage",
  "upstreams",
  "webhooks",
  "keys",
  "nowhere",
];
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
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

async function judge(tab, place) {
  // Evaluated, not added: the policy of the page allows no script in line.
  await tab.page.evaluate(axe.source);
  const judged = (values) => globalThis.axe.run({ runOnly: { type: "tag", values } });
  const { violations } = await tab.page.evaluate(judged, RULES);
  const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" | ")}`);
  assert.deepEqual(found, [], place);
  const wide = await tab.page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(wide <= 0, `${place} is ${wide} px too wide`);
}

for (const scheme of ["light", "dark"]) {
  for (const width of [1280, 360]) {
    test(`every page keeps the rules of WCAG AA, ${scheme}, ${width} px`, async () => {
      const tab = await browser.open(gateway, { width, scheme });
      await judge(tab, "sign in");
      await tab.signIn(KEY);
      await tab.go("keys");
      await tab.page.getByLabel("Admin key").waitFor();
      await judge(tab, "admin key");
      await tab.signIn(ADMIN_KEY);
      for (const path of PAGES) {
        await tab.go(path);
        await tab.page.getByRole("heading", { level: 1 }).waitFor();
        await tab.page.getByText("Loading …").waitFor({ state: "detached" });
        await judge(tab, path);
      }
      if (width === 360) {
        await tab.page.getByRole("button", { name: "Menu" }).click();
        await judge(tab, "menu");
      }
      await tab.go("playground");
      await tab.page.getByRole("textbox", { name: "Message" }).fill("Reply with exactly: seen");
      await tab.page.getByRole("button", { name: "Send", exact: true }).click();
      await tab.page.getByText("Ended by").waitFor();
      await judge(tab, "an answer");
      await tab.go("keys");
      await tab.page.getByRole("button", { name: "Create a key" }).click();
      await tab.page.getByRole("dialog").waitFor();
      await judge(tab, "a dialog");
      await tab.close();
    });
  }
}

test("the page is used by the keyboard alone", async () => {
  const tab = await browser.open(gateway);
  const { page } = tab;
  const focused = () =>
    page.evaluate(() => {
      const element = document.activeElement;
      const label = element?.labels?.[0]?.textContent;
      return label ?? element?.getAttribute("aria-label") ?? element?.textContent ?? "";
    });
  /** Presses Tab until something has the focus, and fails if it is never reached. */
  const reach = async (name) => {
    for (let presses = 0; presses < 60; presses += 1) {
      await page.keyboard.press("Tab");
      const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
      const text = (await focused()).trim();
      if (text === name) {
        assert.notEqual(outline, "none", `${name} shows that it has the focus`);
        return;
      }
    }
    assert.fail(`${name} is not reached`);
  };
  await reach("Key");
  await page.keyboard.type(KEY);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Playground" }).waitFor();
  await page.evaluate(() => document.activeElement?.blur());
  await reach("Skip to the page");
  await page.keyboard.press("Enter");
  await reach("Chat");
  await reach("Chat");
  await page.keyboard.press("ArrowRight");
  await page.getByRole("tab", { name: "Responses", selected: true }).waitFor();
  await reach("Message");
  await page.keyboard.type("Reply with exactly: by hand");
  await page.keyboard.press("Enter");
  await page.getByRole("log").getByText("by hand", { exact: true }).waitFor();

  await tab.go("keys");
  await reach("Admin key");
  await page.keyboard.type(ADMIN_KEY);
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Create a key" }).waitFor();
  await reach("Create a key");
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
  await tab.close();
});

test("a chosen scheme wins over that of the system", async () => {
  const tab = await browser.open(gateway, { scheme: "light" });
  const paper = () => tab.page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await paper();
  await tab.page.getByLabel("Scheme").selectOption("dark");
  const dark = await paper();
  assert.notEqual(light, dark);
  await tab.page.reload();
  await tab.page.getByLabel("Scheme").waitFor();
  assert.equal(await paper(), dark);
  await tab.page.getByLabel("Scheme").selectOption("system");
  assert.equal(await paper(), light);
  await tab.close();
});
