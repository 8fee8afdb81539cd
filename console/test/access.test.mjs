// Without a mouse: everything works with the keyboard alone. axe.test.mjs checks what is shown.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { ADMIN_KEY, BLOCKED, KEY, receiveNotifications, startBrowser, startGateway } from "./support.mjs";

let gateway;
let browser;
before(async () => {
  [gateway, browser] = await Promise.all([
    startGateway({ arguments: ["--allow-private-webhooks"] }),
    startBrowser(),
  ]);
  for (const model of ["model-sol", "model-breeze"]) {
    const body = { model, messages: [{ role: "user", content: "Say hello." }] };
    await gateway.call("/v1/chat/completions", { method: "POST", body });
  }
  await gateway.call("/admin/keys", { key: ADMIN_KEY, method: "POST", body: { name: "one" } });
});
after(() => Promise.all([gateway.stop(), browser.close()]));

/** The focused element: its name, and whether it shows the focus. */
const focused = (page) =>
  page.evaluate(() => {
    const element = document.activeElement;
    if (element === null || element === document.body) return { text: "nothing", outline: "none" };
    const label = (element.labels?.[0] ?? element.querySelector(":scope > table > caption"))?.textContent;
    const text = label ?? element.getAttribute("aria-label") ?? element.textContent ?? "";
    return { text: text.trim(), outline: getComputedStyle(element).outlineStyle };
  });

/** Waits until the page has moved the focus, if it moves it. */
const settled = (page) =>
  page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 100))));

/**
 * Presses Tab until the named element has the focus and keeps it. Fails if it is never reached or doesn't show the focus. The
 * page itself may move the focus: to the heading of a page that just opened, and into and out of a dialog.
 */
async function reach(page, name) {
  for (let presses = 0; presses < 120; presses += 1) {
    await page.keyboard.press("Tab");
    if ((await focused(page)).text !== name) continue;
    await settled(page);
    const { text, outline } = await focused(page);
    if (text !== name) continue;
    assert.notEqual(outline, "none", `${name} shows the focus`);
    return;
  }
  assert.fail(`${name} is not reached`);
}

/** Reaches an element and presses a key there. */
async function press(page, name, key = "Enter") {
  await reach(page, name);
  await page.keyboard.press(key);
}

/** Reaches a field and replaces its content. */
async function write(page, name, text) {
  await press(page, name, "Control+a");
  await page.keyboard.type(text);
}

/** Reaches a select list and moves down to one of its options. */
async function choose(page, name, option) {
  await press(page, name, "Home");
  const chosen = () => page.evaluate(() => document.activeElement.selectedOptions[0].label);
  for (let presses = 0; (await chosen()) !== option; presses += 1) {
    assert.ok(presses < 40, `${name} has the option ${option}`);
    await page.keyboard.press("ArrowDown");
  }
}

/**
 * Fails unless the named element gets the focus without another key press. Elements that go away or are disabled must not take
 * the focus with them, because users would have to start over.
 */
async function isLedTo(page, name) {
  const end = Date.now() + 15_000;
  for (;;) {
    await settled(page);
    const { text } = await focused(page);
    if (text === name) return;
    if (Date.now() > end) assert.equal(text.slice(0, 200), name, "the focused element");
  }
}

/** Signs in with keys, with the keyboard alone. */
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

test("the page works with the keyboard alone", async () => {
  const tab = await browser.open(gateway);
  const { page } = tab;
  const to = (name) => reach(page, name);
  await signInByKeyboard(tab, KEY);
  await isLedTo(page, "Playground");
  await page.evaluate(() => document.activeElement?.blur());
  await to("Skip to content");
  await page.keyboard.press("Enter");
  await to("Text");
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
  // The focus stays in the dialog and returns when it is closed.
  for (let presses = 0; presses < 12; presses += 1) {
    await page.keyboard.press("Tab");
    assert.ok(
      await page.evaluate(() => document.querySelector("[role=dialog]").contains(document.activeElement)),
    );
  }
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await page.waitForFunction(() => document.activeElement?.textContent === "Create a key");
  // Even if the user presses Tab before the dialog has the focus.
  for (let turn = 0; turn < 5; turn += 1) {
    await Promise.all([page.keyboard.press("Enter"), page.keyboard.press("Tab")]);
    await dialog.waitFor();
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    await page.waitForFunction(() => document.activeElement?.textContent === "Create a key");
  }
  await tab.close();
});

test("files are chosen and removed with the keyboard alone", async () => {
  const tab = await browser.open(gateway, { expected: [BLOCKED] });
  const { page } = tab;
  // The browser intercepts file choosers once there is a listener. Just before a key press would be too late.
  page.on("filechooser", () => {});
  await signInByKeyboard(tab, KEY);
  const give = async (name, file) => {
    await reach(page, name);
    const opened = page.waitForEvent("filechooser");
    await page.keyboard.press("Enter");
    await (await opened).setFiles(file);
  };
  const png =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
  await give("Add files", { name: "dot.png", mimeType: "image/png", buffer: Buffer.from(png, "base64") });
  await reach(page, "Remove dot.png");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Remove dot.png" }).waitFor({ state: "detached" });
  await isLedTo(page, "Message");
  // With several, the next one can be removed immediately.
  for (const name of ["one.png", "two.png"]) {
    await give("Add files", { name, mimeType: "image/png", buffer: Buffer.from(png, "base64") });
    await page.getByRole("button", { name: `Remove ${name}` }).waitFor();
  }
  await press(page, "Remove one.png");
  await isLedTo(page, "Remove two.png");

  await tab.go("reports");
  const report = new URL("../../examples/reports/good.json", import.meta.url).pathname;
  await give("Compare with an older report", report);
  await page.getByText("Now open the newer one.").waitFor();
  await page.evaluate(() => document.activeElement?.blur());
  await give("Open a report", report);
  await page.frameLocator("iframe.report").getByText("Nothing got worse").waitFor();
  await reach(page, "Close");
  await page.keyboard.press("Space");
  await page.locator("iframe.report").waitFor({ state: "detached" });
  await isLedTo(page, "Open a report");
  await tab.close();
});

test("an operation is found and tried with the keyboard alone", async () => {
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
  await page.getByRole("region", { name: "The response" }).getByText('"id": "model-sol"').waitFor();
  await reach(page, "Send GET");
  await reach(page, "The response");
  await tab.close();
});

test("a key is rotated and revoked with the keyboard alone", async () => {
  await gateway.call("/admin/keys", { key: ADMIN_KEY, method: "POST", body: { name: "by hand" } });
  const tab = await browser.open(gateway);
  const { page } = tab;
  await signInByKeyboard(tab, ADMIN_KEY);
  const dialog = page.getByRole("dialog");
  await reach(page, "Rotate by hand");
  await page.keyboard.press("Enter");
  await dialog.waitFor();
  await reach(page, "Hours the old secret stays valid");
  await page.keyboard.press("Control+a");
  await page.keyboard.type("0");
  await reach(page, "Rotate");
  await page.keyboard.press("Space");
  const secret = await dialog.locator(".secret").textContent();
  await reach(page, "I've saved it");
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
  await isLedTo(page, "Newest first");
  assert.equal((await gateway.call("/v1/models", { key: secret })).status, 401);
  await reach(page, "Show revoked keys");
  const again = page.waitForRequest((request) => request.url().endsWith("/admin/keys?revoked=true"));
  await page.keyboard.press("Space");
  await again;
  await tab.close();
});

test("lists are filtered with the keyboard alone", async () => {
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
  for (const [path, filter, key, expected] of [
    ["usage", "Days", "9", "/admin/usage"],
    ["usage", "Group by", "m", "by=day,model"],
    ["tasks", "Status", "f", "/admin/tasks?status=failed"],
    ["webhooks", "Status", "d", "/admin/webhooks?status=delivered"],
  ]) {
    await tab.go(path);
    await page.getByText("Loading…").waitFor({ state: "detached" });
    await page.evaluate(() => document.activeElement?.blur());
    await reach(page, filter);
    const again = page.waitForRequest((request) => decodeURIComponent(request.url()).includes(expected));
    await page.keyboard.press(key);
    await again;
  }
  await tab.close();
});

test("an image is generated with the keyboard alone", async () => {
  const tab = await browser.open(gateway);
  const { page } = tab;
  await signInByKeyboard(tab, KEY);
  await press(page, "Images");
  await page.getByText("Your images appear here.").waitFor();
  await choose(page, "Model", "image_model_2");
  await write(page, "Prompt", "a harbour at dawn");
  await choose(page, "Size", "256x256");
  await write(page, "Number of images", "2");
  await press(page, "Generate");
  const images = page.getByRole("region", { name: "Images" }).getByRole("img");
  await images.nth(1).waitFor();
  assert.deepEqual(await images.evaluateAll((all) => all.map((image) => image.naturalWidth)), [256, 256]);
  await page.getByRole("status").getByText("Generated in").waitFor();
  await isLedTo(page, "Generate");
  await tab.close();
});

test("a video is requested, watched and saved with the keyboard alone", async () => {
  const tab = await browser.open(gateway);
  const { page } = tab;
  await signInByKeyboard(tab, KEY);
  await press(page, "Videos");
  await page.getByText("Your video appears here when it's ready.").waitFor();
  await choose(page, "Model", "video_model_4");
  await write(page, "Prompt", "boats that leave a harbour");
  await write(page, "Duration in seconds", "3");
  await choose(page, "Resolution", "720p");
  await press(page, "Generate");
  const result = page.getByRole("region", { name: "Video", exact: true });
  await result.getByRole("progressbar").waitFor();
  await isLedTo(page, "Stop watching");
  await result.getByText("completed", { exact: true }).waitFor();
  await result.getByText("1280x720, 3 s, mp4").waitFor();
  await isLedTo(page, "Generate");
  await press(page, "The video", "Space");
  await page.waitForFunction(() => document.querySelector("video").currentTime > 0);
  const saved = page.waitForEvent("download");
  await press(page, "Open the file");
  const file = await readFile(await (await saved).path());
  assert.ok(file.subarray(0, 8).includes("ftyp"));
  await tab.close();
});

test("a key with scopes is created and saved with the keyboard alone", async () => {
  const tab = await browser.open(gateway);
  const { page } = tab;
  await signInByKeyboard(tab, ADMIN_KEY);
  const dialog = page.getByRole("dialog");
  await press(page, "Create a key");
  await dialog.waitFor();
  await isLedTo(page, "Name");
  await page.keyboard.type("typed");
  await press(page, "Models: all");
  await write(page, "Other ids and patterns", "model-s*");
  await press(page, "Operations: all");
  for (const operation of ["create_chat_completion", "list_models"]) await press(page, operation, "Space");
  await press(page, "Report the upstream in x-gatewright-upstream", "Space");
  await write(page, "Expires after (days)", "30");
  await press(page, "Limits");
  await write(page, "Requests per minute", "60");
  await press(page, "Create");
  await dialog.getByText("This is the secret for typed.").waitFor();
  await isLedTo(page, "Copy the secret");
  const secret = await dialog.locator(".secret").textContent();
  await press(page, "Copy the secret");
  await dialog.getByRole("status").getByText("Copied").waitFor();
  await press(page, "I've saved it");
  await dialog.waitFor({ state: "detached" });
  await isLedTo(page, "Create a key");
  const row = page.getByRole("row", { name: /typed/ });
  await row.getByText("model-s*; create_chat_completion, list_models; sees the upstream").waitFor();
  await row.getByText("requests per minute: 60", { exact: true }).waitFor();
  const ask = async (path, model) => {
    const body = { model, max_tokens: 9, messages: [{ role: "user", content: "Say hello." }] };
    return (await gateway.call(path, { key: secret, method: "POST", body })).status;
  };
  assert.equal(await ask("/v1/chat/completions", "model-sol"), 200);
  assert.equal(await ask("/v1/chat/completions", "model-luna"), 403);
  assert.equal(await ask("/v1/messages", "model-sol"), 403);
  // The clipboard has the secret: pasting it into the sign-in form fills in the key.
  await press(page, "Sign out");
  await isLedTo(page, "Admin key");
  await page.keyboard.press("Control+v");
  assert.equal(await page.getByLabel("Admin key").inputValue(), secret);
  await tab.close();
});

test("a notification is delivered again with the keyboard alone", async (t) => {
  const receiver = await receiveNotifications(t, 500);
  const video = { model: "video_model_4", prompt: "waves", duration: 3, resolution: "720p" };
  const body = { ...video, webhook_url: receiver.url };
  assert.equal((await gateway.call("/v1/videos/generations", { method: "POST", body })).status, 200);
  const tab = await browser.open(gateway);
  const { page } = tab;
  await signInByKeyboard(tab, ADMIN_KEY);
  await press(page, "Webhooks");
  const row = page.getByRole("row", { name: /msg_/ });
  await row.getByText("status 500").waitFor();
  const id = await row.locator("code").first().textContent();
  receiver.status = 204;
  const before = receiver.received;
  await press(page, `Redeliver ${id}`);
  await page.getByRole("status").getByText(`${id} will be delivered again.`).waitFor();
  await row.getByText("delivered", { exact: true }).waitFor();
  assert.ok(receiver.received > before);
  // The list has been fetched again in the meantime.
  await isLedTo(page, `Redeliver ${id}`);
  // If the row is no longer listed, the list gets the focus.
  receiver.status = 500;
  await choose(page, "Status", "delivered");
  await press(page, `Redeliver ${id}`);
  const empty = "No notifications found. Video requests with webhook_url create them.";
  await page.getByText(empty).waitFor();
  await isLedTo(page, empty);
  await tab.close();
});

test("the code of a request is copied with the keyboard alone", async () => {
  const tab = await browser.open(gateway);
  const { page } = tab;
  await signInByKeyboard(tab, KEY);
  await write(page, "Message", "Tell me about rivers.");
  await reach(page, "Python");
  for (const language of ["Node", "Rust", "curl"]) {
    await page.keyboard.press("ArrowRight");
    await page.getByRole("tab", { name: language, selected: true }).waitFor();
  }
  const code = await page.getByRole("region", { name: "The request in curl" }).textContent();
  assert.ok(code.startsWith("curl ") && code.includes("Tell me about rivers."), code);
  await press(page, "Copy");
  await page.getByRole("status").getByText("Copied").waitFor();
  await isLedTo(page, "Copy");
  await reach(page, "The request in curl");
  await press(page, "Message", "Control+a");
  await page.keyboard.press("Control+v");
  assert.equal(await page.getByRole("textbox", { name: "Message" }).inputValue(), code);
  await tab.close();
});

test("two models are compared with the keyboard alone", async () => {
  const tab = await browser.open(gateway);
  const { page } = tab;
  await signInByKeyboard(tab, KEY);
  await press(page, "Two models side by side", "Space");
  await isLedTo(page, "Two models side by side");
  await choose(page, "Model", "model-luna");
  await choose(page, "Second model", "model-breeze");
  await write(page, "Message", "Reply with exactly: both");
  const models = [];
  page.on("request", (request) => {
    if (request.method() === "POST") models.push(request.postDataJSON().model);
  });
  await press(page, "Send");
  for (const name of ["Conversation", "Second conversation"]) {
    const pane = page.getByRole("region", { name, exact: true });
    await pane.getByText("both", { exact: true }).waitFor();
    await pane.getByText("Finish reason").waitFor();
  }
  assert.deepEqual(models.sort(), ["model-breeze", "model-luna"]);
  await isLedTo(page, "Send");
  await press(page, "Two models side by side", "Space");
  await page.getByRole("region", { name: "Second conversation" }).waitFor({ state: "detached" });
  await tab.close();
});

test("a tool's result is sent with the keyboard alone", async () => {
  const tab = await browser.open(gateway);
  const { page } = tab;
  await signInByKeyboard(tab, KEY);
  await press(page, "Fill in an example");
  await page.getByRole("button", { name: "Fill in an example" }).waitFor({ state: "detached" });
  await isLedTo(page, "Tools");
  await write(page, "Message", "Call get_weather for Lisbon.");
  await page.keyboard.press("Enter");
  const log = page.getByRole("log", { name: "Transcript" });
  await log.getByText(/^get_weather\(/).waitFor();
  await write(page, "Result of get_weather", "sunny");
  const posted = page.waitForRequest((request) => request.method() === "POST");
  await press(page, "Send the result");
  const { messages } = (await posted).postDataJSON();
  assert.deepEqual([messages.at(-1).role, messages.at(-1).content], ["tool", "sunny"]);
  await log.getByText("get_weather: sunny").waitFor();
  await log.getByRole("heading", { name: "Model" }).nth(1).waitFor();
  await isLedTo(page, "Transcript");
  await tab.close();
});

test("running requests are stopped with the keyboard alone, and stopping sends nothing", async (t) => {
  const faults = "hang=6@create_chat_completion,delay=60000@create_image";
  const slow = await startGateway({ arguments: ["--fault", faults] });
  t.after(() => slow.stop());
  const tab = await browser.open(slow);
  const { page } = tab;
  await signInByKeyboard(tab, KEY);
  let posts = 0;
  page.on("request", (request) => {
    if (request.method() === "POST") posts += 1;
  });
  await write(page, "Message", "Tell me about rivers, at length.");
  await page.keyboard.press("Enter");
  await page.locator(".turn.assistant .markdown").waitFor();
  await page.keyboard.type("And about lakes?");
  await press(page, "Stop");
  await page.getByRole("log").getByText("You stopped the response.").waitFor();
  await isLedTo(page, "Send");
  assert.equal(await page.getByRole("textbox", { name: "Message" }).inputValue(), "And about lakes?");
  await press(page, "Images");
  await reach(page, "Generate");
  // The second one is the repeat of a held key.
  for (let time = 0; time < 2; time += 1) await page.keyboard.down("Enter");
  await page.keyboard.up("Enter");
  await page.getByText("Generating…").waitFor();
  await isLedTo(page, "Stop");
  await page.keyboard.press("Enter");
  await page.getByText("Your images appear here.").waitFor();
  await isLedTo(page, "Generate");
  assert.equal(posts, 2);
  await tab.close();
});

test("the menu on a small screen works with the keyboard alone", async () => {
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
  // The heading of the chosen page gets the focus, and the menu is closed.
  await page.getByRole("heading", { name: "Models", level: 1 }).waitFor();
  await page.waitForFunction(() => document.activeElement?.textContent === "Models");
  assert.equal(await isOpen(), "false");
  await page.getByRole("link", { name: "Video tasks" }).waitFor({ state: "hidden" });
  await tab.close();
});

test("a chosen scheme overrides the system's", async () => {
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
