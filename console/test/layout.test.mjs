// Page layout from narrow to wide windows: no word is broken, and no control is out of view.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startGatewayInUse } from "./in-use.mjs";
import { brokenWords, outOfView, overflow, wideTables } from "./layout.mjs";
import { ADMIN_KEY, KEY, REFUSED, startBrowser } from "./support.mjs";

const WIDTHS = [360, 768, 1024, 1440];
const PAGES = [
  "playground",
  "playground/images",
  "playground/videos",
  "models",
  "reports",
  "reference",
  "reference/create_chat_completion",
  "reference/list_response_input_items",
  "requests",
  "usage",
  "upstreams",
  "tasks",
  "webhooks",
  "keys",
];

let gateway;
let browser;
before(async () => {
  [gateway, browser] = await Promise.all([startGatewayInUse(), startBrowser()]);
  // Names can be as long as their owners like.
  const body = { name: "reconciliation-of-quarterly-statements-europe-west" };
  const made = await gateway.call("/admin/keys", { key: ADMIN_KEY, method: "POST", body });
  const { secret } = await made.json();
  const question = { model: "model-sol", messages: [{ role: "user", content: "Say hello." }] };
  await gateway.call("/v1/chat/completions", { key: secret, method: "POST", body: question });
});
after(() => Promise.all([gateway.stop(), browser.close()]));

/** Opens a tab with both keys. */
async function open(size) {
  const tab = await browser.open(gateway, size);
  await tab.signIn(KEY);
  await tab.go("keys");
  await tab.page.getByLabel("Admin key").waitFor();
  await tab.signIn(ADMIN_KEY);
  return tab;
}

async function judge(page, place) {
  const measured = async (measure) => page.evaluate(measure);
  assert.deepEqual(await measured(brokenWords), [], `${place}: broken words`);
  assert.deepEqual(await measured(outOfView), [], `${place}: out of view`);
  assert.deepEqual(await measured(wideTables), [], `${place}: tables scroll sideways`);
  assert.ok((await measured(overflow)) <= 0, `${place}: wider than the window`);
}

for (const width of WIDTHS) {
  test(`no word is broken and no action is out of view, ${width} px`, async () => {
    const tab = await open({ width });
    for (const path of PAGES) {
      await tab.go(path);
      await tab.page.getByRole("heading", { level: 1 }).waitFor();
      await tab.page.getByText("Loading…").waitFor({ state: "detached" });
      await judge(tab.page, path);
    }
    await tab.go("playground");
    await tab.page.getByText("More settings").click();
    await tab.page.getByLabel("Two models side by side").check();
    await judge(tab.page, "two models");
    await tab.close();
  });

  test(`a dialog taller than the window scrolls and keeps its buttons in view, ${width} px`, async () => {
    const tab = await open({ width, height: 800 });
    const { page } = tab;
    await tab.go("keys");
    await page.getByRole("button", { name: "Create a key" }).click();
    const dialog = page.getByRole("dialog");
    for (const part of ["Models: all", "Operations: all", "Limits"]) await dialog.getByText(part).click();
    const box = await dialog.boundingBox();
    assert.ok(box.y >= 0 && box.y + box.height <= 800, JSON.stringify(box));
    await page.evaluate(() => document.querySelector("[role=dialog]").scrollTo(0, 0));
    for (const name of ["Cancel", "Create"]) {
      const button = await dialog.getByRole("button", { name }).boundingBox();
      assert.ok(button.y + button.height <= 800, `${name} ends at ${button.y + button.height}`);
    }
    // The last field can be reached and isn't covered by the buttons.
    const last = dialog.getByLabel("File storage in bytes");
    await last.focus();
    const [field, buttons] = [await last.boundingBox(), await dialog.locator(".actions").boundingBox()];
    assert.ok(field.y + field.height <= buttons.y, `${field.y + field.height} and ${buttons.y}`);
    assert.deepEqual(await page.evaluate(brokenWords), []);
    await tab.close();
  });
}

/** Layout faults: the name, the page where it shows, and CSS rules that cause it. */
const BREAKS = [
  [
    "ids that wrap",
    "tasks",
    ".id { white-space: normal; overflow-wrap: anywhere; display: block; width: 3rem; max-width: 3rem; }",
    brokenWords,
  ],
  ["dates that wrap", "webhooks", "time { white-space: normal; display: block; width: 3rem; }", brokenWords],
  ["actions outside the window", "keys", "td .actions { width: 200rem; justify-content: end; }", outOfView],
  ["a table that scrolls sideways", "keys", "td { display: block; width: 200rem; }", wideTables],
];

for (const [what, path, rules, measure] of BREAKS) {
  test(`the measurements find ${what}`, async () => {
    const tab = await open({ width: 1024 });
    await tab.go(path);
    await tab.page.getByRole("row").nth(1).waitFor();
    await tab.page.evaluate((text) => {
      const sheet = new CSSStyleSheet();
      sheet.replaceSync(text);
      document.adoptedStyleSheets = [sheet];
    }, rules);
    assert.notDeepEqual(await tab.page.evaluate(measure), []);
    await tab.close();
  });
}

test("a name has the same color in every chart, and every chart has a scale", async () => {
  const tab = await open({ width: 1440 });
  const { page } = tab;
  await tab.go("usage");
  let known;
  for (const [part, name] of [
    ["key", /mobile app/],
    ["model", /model-sol/],
  ]) {
    await page.getByLabel("Group by", { exact: true }).selectOption(part);
    await page.getByRole("row", { name }).first().waitFor();
    const charts = await page.locator(".chart").evaluateAll((all) =>
      all.map((chart) => ({
        bars: [...chart.querySelectorAll("rect")].map((bar) => [
          bar.textContent.replace(/^[\d-]+, (.*): .*$/, "$1"),
          getComputedStyle(bar).fill,
        ]),
        marks: [...chart.querySelectorAll(".scale li")].map((mark) => mark.textContent),
      })),
    );
    assert.equal(charts.length, 3);
    const colours = new Map();
    for (const { bars, marks } of charts) {
      for (const [name, colour] of bars) {
        assert.equal(colours.get(name) ?? colour, colour, name);
        colours.set(name, colour);
      }
      assert.equal(marks.at(-1), "0");
      assert.ok(marks.length >= 2 && new Set(marks).size === marks.length, marks.join());
    }
    assert.equal(new Set(colours.values()).size, colours.size, "no two names share a color");
    // Also after a reload, whatever the order of the names by then.
    if (part === "key") known = colours;
  }
  await page.reload();
  await page.locator(".chart rect").first().waitFor();
  const again = await page
    .locator(".chart rect")
    .evaluateAll((all) =>
      all.map((bar) => [bar.textContent.replace(/^[\d-]+, (.*): .*$/, "$1"), getComputedStyle(bar).fill]),
    );
  assert.ok(again.length > 0);
  for (const [name, colour] of again) assert.equal(known.get(name), colour, name);
  await tab.close();
});

test("a hidden tab sends no requests and sets no timers, and fetches as soon as it is visible again", async () => {
  const tab = await open({ width: 1440 });
  const { page } = tab;
  await page.getByRole("button", { name: "Create a key" }).waitFor();
  const turn = (isHidden) =>
    page.evaluate((hidden) => {
      Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }, isHidden);
  await page.evaluate(() => {
    const before = globalThis.setTimeout;
    globalThis.timers = 0;
    globalThis.setTimeout = (...given) => {
      globalThis.timers += 1;
      return before(...given);
    };
  });
  await turn(true);
  const paths = [];
  // Ignores the tab's icon, which the browser requests itself.
  page.on("request", (request) => {
    if (request.resourceType() === "fetch") paths.push(new URL(request.url()).pathname);
  });
  // Data that is fetched once, and data that is polled.
  for (const path of ["reference", "requests"]) {
    await tab.go(path);
    await page.getByRole("heading", { level: 1 }).waitFor();
    await page.evaluate(() => {
      globalThis.timers = 0;
    });
    await page.waitForTimeout(2500);
    const timers = await page.evaluate(() => globalThis.timers);
    assert.ok(timers < 5, `${path}: ${timers} timers`);
  }
  assert.deepEqual(paths, []);
  await turn(false);
  await page.getByRole("region", { name: "Newest first" }).waitFor();
  assert.ok(paths.includes("/admin/requests"), paths.join());
  await tab.close();
});

test("keys with scopes and an expiry date are a table at 1280 px, and an error is in view", async () => {
  const tab = await open({ width: 1280, height: 600, expected: [REFUSED] });
  const { page } = tab;
  const scopes = { models: ["model-*"], operations: ["create_chat_completion"] };
  const body = { name: "expiring", scopes, expires: Math.floor(Date.now() / 1000) + 86_400 };
  await gateway.call("/admin/keys", { key: ADMIN_KEY, method: "POST", body });
  // The name that is longer than all columns makes cards at any width.
  const long = "reconciliation-of-quarterly-statements-europe-west";
  await gateway.call(`/admin/keys/${long}`, { key: ADMIN_KEY, method: "DELETE" });
  await page.reload();
  await page.getByText("expiring", { exact: true }).first().waitFor();
  assert.equal(await page.locator(".stacked").count(), 0);
  await page.getByRole("button", { name: "Create a key" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("expiring");
  await dialog.getByText("Limits").click();
  await dialog.getByRole("button", { name: "Create", exact: true }).click();
  const alert = await dialog.getByRole("alert").boundingBox();
  const buttons = await dialog.locator("form > .actions").boundingBox();
  assert.ok(alert.y >= 0 && alert.y + alert.height <= buttons.y, JSON.stringify([alert, buttons]));
  await tab.close();
});

test("hints about keys and dropped files are not shown on a phone, and unknown pages lead to the playground", async () => {
  const tab = await browser.open(gateway, { width: 390, isTouched: true });
  const { page } = tab;
  await tab.signIn(KEY);
  const message = page.getByRole("textbox", { name: "Message", exact: true });
  assert.equal(await message.getAttribute("placeholder"), "");
  assert.equal(await page.getByText("or drop them here").isVisible(), false);
  await message.fill("one");
  await message.press("Enter");
  assert.equal(await message.inputValue(), "one\n");
  await tab.go("nowhere");
  await page.getByRole("link", { name: "Go to the playground" }).click();
  await message.waitFor();
  await tab.close();
});
