// axe's WCAG AA rules: every page in use, in both schemes and at two widths, including what its actions show.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startGatewayInUse } from "./in-use.mjs";
import { judge } from "./judge.mjs";
import { ADMIN_KEY, KEY, REFUSED, startBrowser } from "./support.mjs";

const report = (name) => new URL(`../../examples/reports/${name}.json`, import.meta.url).pathname;
const row = (page, text) => page.getByRole("row").filter({ hasText: text }).first().waitFor();
const press = (page, name) => page.getByRole("button", { name, exact: true }).click();

/**
 * The pages, and what to look at and do on each. `judge` takes the name of what is shown. A test fails if a page in the
 * navigation is missing here.
 */
const PAGES = {
  playground: async (page, judge) => {
    await page.getByRole("textbox", { name: "Message" }).fill("Reply with exactly: seen");
    await press(page, "Send");
    await page.getByText("Finish reason").waitFor();
    await judge("an answer");
    await page.getByText("More settings").click();
    await judge("more settings");
    await page.getByLabel("Temperature").fill("9");
    await page.getByRole("textbox", { name: "Message" }).fill("Say hello.");
    await press(page, "Send");
    await page.getByRole("alert").first().waitFor();
    await judge("a rejection");
  },
  "playground/images": async (page, judge) => {
    await page.getByLabel("Model", { exact: true }).selectOption("image_model_2");
    await page.getByLabel("Size").selectOption("256x256");
    await press(page, "Generate");
    await page.locator(".gallery img").waitFor();
    await judge("an image");
  },
  "playground/videos": async (page, judge) => {
    await page.getByLabel("Model", { exact: true }).selectOption("video_model_4");
    await page.getByLabel("Duration in seconds").fill("3");
    await press(page, "Generate");
    await page.locator("progress").waitFor();
    await judge("a video in progress");
    await page.locator("video").waitFor();
    await judge("a video");
    await page.getByLabel("Prompt").fill("[fail: refused by the provider]");
    await press(page, "Generate");
    await page.getByRole("alert").waitFor();
    await judge("a video that failed");
  },
  models: async (page) => row(page, "model-sol"),
  reports: async (page, judge) => {
    const files = page.locator("input[type=file]");
    const shown = page.frameLocator("iframe.report");
    await files.first().setInputFiles(report("broken"));
    await page.getByRole("alert").waitFor();
    await judge("the problems in a report");
    await files.first().setInputFiles(report("good"));
    await shown.getByRole("heading", { name: "Checks and models" }).waitFor();
    await judge("a report");
    await files.nth(1).setInputFiles(report("good"));
    await shown.getByText("Nothing got worse").waitFor();
    await judge("a comparison");
  },
  reference: async () => {},
  "reference/create_response": async () => {},
  "reference/retrieve_model": async (page, judge) => {
    const answer = page.getByRole("region", { name: "The response" });
    await page.getByLabel("model", { exact: true }).fill("model-sol");
    await press(page, "Send GET");
    await answer.getByText('"id": "model-sol"').waitFor();
    await judge("an operation's response");
    await page.getByLabel("model", { exact: true }).fill("no-such-model");
    await press(page, "Send GET");
    await page.getByRole("alert").waitFor();
    await judge("an operation's rejection");
  },
  "reference/create_chat_completion": async (page, judge) => {
    await page.locator(".members > li").filter({ hasText: "messages" }).locator("summary").first().click();
    await page.getByLabel("Body").fill("{");
    await press(page, "Send POST");
    await page.getByRole("alert").waitFor();
    await judge("a body that is not JSON");
  },
  requests: async (page, judge) => {
    await row(page, "create_chat_completion");
    await page
      .getByRole("button", { name: /^Details/ })
      .first()
      .click();
    await page.getByRole("dialog").waitFor();
    await judge("a request");
    await press(page, "Close");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.getByLabel("Search").fill("nothing like this");
    await page.getByText("No finished requests match.").waitFor();
    await judge("no request");
  },
  usage: async (page, judge) => {
    await page.locator(".chart rect").first().waitFor();
    await page.getByLabel("Days").selectOption("own");
    await page.getByLabel("From").waitFor();
    await judge("own dates");
    await page.getByLabel("To", { exact: true }).fill("2020-01-01");
    await page.getByRole("alert").waitFor();
    await judge("no dates");
  },
  upstreams: async (page, judge) => {
    await page.getByText("away", { exact: true }).first().waitFor();
    await press(page, "Test away");
    await page.getByRole("status").getByText("failed").waitFor();
    await judge("a test that failed");
  },
  tasks: async (page, judge) => {
    await row(page, "completed");
    await row(page, "the prompt was refused");
    await page.getByLabel("Status").selectOption("failed");
    await page.getByRole("row").filter({ hasText: "completed" }).first().waitFor({ state: "detached" });
    await judge("tasks that failed");
  },
  webhooks: async (page, judge) => {
    await row(page, "delivered");
    await row(page, "status 404");
    await page
      .getByRole("button", { name: /^Redeliver/ })
      .first()
      .click();
    await page.getByRole("status").getByText("will be delivered again").waitFor();
    await judge("a redelivery");
  },
  keys: async (page, judge) => {
    const dialog = page.getByRole("dialog");
    const closed = () => dialog.waitFor({ state: "detached" });
    await row(page, "mobile app");
    await press(page, "Create a key");
    await dialog.waitFor();
    await judge("the dialog that creates a key");
    for (const picker of ["Models: all", "Operations: all"]) await dialog.getByText(picker).click();
    await judge("the models and operations of a new key");
    await dialog.getByText("Limits").click();
    await dialog.getByLabel("Name").fill("mobile app");
    await press(page, "Create");
    await dialog.getByRole("alert").waitFor();
    await judge("a key that isn't created");
    await press(page, "Cancel");
    await closed();
    await press(page, "Rotate mobile app");
    await dialog.waitFor();
    await judge("the dialog that rotates a key");
    await press(page, "Rotate");
    await dialog.locator(".secret").waitFor();
    await judge("the secret");
    await press(page, "I've saved it");
    await closed();
    await press(page, "Revoke mobile app");
    await dialog.waitFor();
    await judge("the dialog that revokes a key");
    await dialog.getByLabel("Type mobile app to revoke it").fill("mobile app");
    await judge("the dialog with the name typed in");
    await press(page, "Cancel");
    await closed();
  },
  nowhere: async () => {},
};
/** Pages that the navigation doesn't link to. */
const UNLINKED = [
  "reference/create_response",
  "reference/retrieve_model",
  "reference/create_chat_completion",
  "nowhere",
];

let gateway;
let browser;
before(async () => {
  [gateway, browser] = await Promise.all([startGatewayInUse(), startBrowser()]);
});
after(() => Promise.all([gateway.stop(), browser.close()]));

const loaded = async ({ page }) => {
  await page.getByRole("heading", { level: 1 }).waitFor();
  await page.getByText("Loading…").waitFor({ state: "detached" });
};

test("every page in the navigation is checked", async () => {
  const tab = await browser.open(gateway);
  await tab.signIn(KEY);
  await tab.go("keys");
  await tab.page.getByLabel("Admin key").waitFor();
  await tab.signIn(ADMIN_KEY);
  const linked = new Set();
  for (const [path, navigation] of [
    ["keys", "Pages"],
    ["playground", "Playground"],
  ]) {
    await tab.go(path);
    await loaded(tab);
    const links = tab.page.getByRole("navigation", { name: navigation, exact: true }).getByRole("link");
    await links.first().waitFor();
    for (const link of await links.all()) linked.add((await link.getAttribute("href")).replace("#/", ""));
  }
  assert.deepEqual(Object.keys(PAGES).sort(), [...linked, ...UNLINKED].sort());
  await tab.close();
});

for (const scheme of ["light", "dark"]) {
  for (const width of [1280, 360]) {
    test(`every page follows WCAG AA, ${scheme}, ${width} px`, async () => {
      const tab = await browser.open(gateway, { width, scheme, expected: [REFUSED] });
      await judge(tab, "sign in");
      await tab.page.getByLabel("Key", { exact: false }).first().fill("gw-wrong");
      await press(tab.page, "Sign in");
      await tab.page.getByRole("alert").waitFor();
      await judge(tab, "a rejected key");
      await tab.signIn(KEY);
      await tab.go("keys");
      await tab.page.getByLabel("Admin key").waitFor();
      await judge(tab, "admin key");
      await tab.signIn(ADMIN_KEY);
      for (const [path, act] of Object.entries(PAGES)) {
        await tab.go(path);
        await loaded(tab);
        await judge(tab, path);
        await act(tab.page, (what) => judge(tab, `${path}: ${what}`));
        await judge(tab, `${path}, at the end`);
      }
      if (width === 360) {
        await press(tab.page, "Menu");
        await judge(tab, "menu");
      }
      await tab.close();
    });
  }
}
