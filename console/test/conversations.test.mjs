// Conversations: messages that fail, retries, edits, and what is stored in the browser and exported.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { judge } from "./judge.mjs";
import { ADMIN_KEY, KEY, REFUSED, startBrowser, startWithProvider } from "./support.mjs";

let browser;
before(async () => {
  browser = await startBrowser();
});
after(() => browser.close());

const message = (page) => page.getByRole("textbox", { name: "Message", exact: true });
const press = (page, name) => page.getByRole("button", { name, exact: true }).click();
const send = async (page, text) => {
  await message(page).fill(text);
  await press(page, "Send");
};
const transcript = (page) => page.getByRole("log", { name: "Transcript" });
/** Waits for an answer and its end: only then is it part of the conversation, which is stored and exported. */
const waitForAnswer = async (page, text) => {
  await transcript(page).getByText(text, { exact: true }).waitFor();
  await page.getByRole("button", { name: "Send", exact: true }).waitFor();
};
/** The texts of a request's messages. */
const texts = ({ messages }) => messages.map(({ content }) => content);

test("a message that fails is not sent again, and is the draft again", async (t) => {
  const { gateway, bodies } = await startWithProvider(t, [400, ["one"], 400, ["two"]]);
  const tab = await browser.open(gateway, { expected: [REFUSED] });
  const { page } = tab;
  await tab.signIn(KEY);
  await send(page, "A");
  await transcript(page).getByRole("alert").waitFor();
  assert.equal(await message(page).inputValue(), "A");
  await judge(tab, "a message that failed");
  await send(page, "B");
  await waitForAnswer(page, "one");
  assert.deepEqual(texts(bodies[1]), ["B"]);
  const file = { name: "a.pdf", mimeType: "application/pdf", buffer: Buffer.from("%PDF-1.4") };
  await page.locator("input[type=file]").setInputFiles(file);
  await page.getByRole("button", { name: "Remove a.pdf" }).waitFor();
  await send(page, "C");
  await transcript(page).getByRole("alert").waitFor();
  await page.getByRole("button", { name: "Remove a.pdf" }).waitFor();
  await transcript(page).getByText("This message is not part of the conversation.").waitFor();
  await transcript(page).getByRole("button", { name: "Retry" }).last().click();
  await waitForAnswer(page, "two");
  assert.deepEqual(texts(bodies[3]).slice(0, 2), ["B", "one"]);
  assert.equal(texts(bodies[3])[2][0].text, "C");
  assert.equal(await page.getByRole("button", { name: "Remove a.pdf" }).count(), 0);
  assert.equal(await message(page).inputValue(), "");
  await tab.close();
});

test("an answer can be requested again, and a message can be edited", async (t) => {
  const { gateway, bodies } = await startWithProvider(t, [["one"], ["other"], 400, ["third"]]);
  const tab = await browser.open(gateway, { expected: [REFUSED] });
  const { page } = tab;
  await tab.signIn(KEY);
  await send(page, "A");
  await waitForAnswer(page, "one");
  await press(page, "Retry");
  await waitForAnswer(page, "other");
  assert.equal(await transcript(page).getByText("one", { exact: true }).count(), 0);
  assert.deepEqual(texts(bodies[1]), ["A"]);
  // An answer stays if its replacement fails.
  await press(page, "Retry");
  await transcript(page).getByRole("alert").waitFor();
  await waitForAnswer(page, "other");
  await press(page, "Edit");
  const field = page.getByRole("textbox", { name: "Edited message" });
  assert.ok(await field.evaluate((element) => element === document.activeElement));
  await judge(tab, "a message that is edited");
  await field.fill("B");
  await press(page, "Send edited");
  await waitForAnswer(page, "third");
  assert.deepEqual(texts(bodies[3]), ["B"]);
  assert.equal(await page.locator(".turn").count(), 2);
  await tab.close();
});

test("a conversation survives a reload for its own key, and ends at sign-out", async (t) => {
  const { gateway, bodies } = await startWithProvider(t, [["one"], ["two"], ["three"]]);
  const tab = await browser.open(gateway);
  const { page } = tab;
  await tab.signIn(KEY);
  await page.getByLabel("System prompt").fill("Be brief.");
  await send(page, "A");
  await waitForAnswer(page, "one");
  await page.reload();
  await waitForAnswer(page, "one");
  assert.equal(await page.getByLabel("System prompt").inputValue(), "Be brief.");
  await send(page, "B");
  await waitForAnswer(page, "two");
  assert.deepEqual(texts(bodies[1]), ["Be brief.", "A", "one", "B"]);

  await press(page, "New");
  await transcript(page).getByText("Ask something below.").waitFor();
  await send(page, "C");
  await waitForAnswer(page, "three");
  await page.getByText("Earlier (1)").click();
  await judge(tab, "earlier conversations");
  await press(page, "A");
  await waitForAnswer(page, "two");
  assert.doesNotMatch(await page.evaluate(() => JSON.stringify({ ...localStorage })), /canary/);

  // Another key has its own.
  const made = await gateway.call("/admin/keys", { key: ADMIN_KEY, method: "POST", body: { name: "other" } });
  const other = await tab.context.newPage();
  await other.goto(gateway.url);
  await other.getByLabel("Key").fill((await made.json()).secret);
  await other.getByRole("button", { name: "Sign in" }).click();
  await other.getByText("Ask something below.").waitFor();
  assert.equal(await other.getByText(/^Earlier/).count(), 0);
  await other.close();

  await press(page, "Sign out");
  await page.getByLabel("Key").first().waitFor();
  assert.deepEqual(await page.evaluate(() => ({ ...localStorage })), {});
  await tab.close();
});

test("a deleted conversation is gone, and the oldest ones make room", async (t) => {
  const { gateway } = await startWithProvider(t, [["one"]]);
  const tab = await browser.open(gateway);
  const { page } = tab;
  await tab.signIn(KEY);
  const count = () => page.evaluate(() => Object.keys(localStorage).length);
  await send(page, "A");
  await waitForAnswer(page, "one");
  assert.equal(await count(), 1);
  await press(page, "Clear");
  assert.equal(await count(), 0);
  await page.evaluate(() => {
    for (let place = 0; place < 30; place++) {
      const turn = { role: "user", text: `Old ${place}`, files: [], thoughts: [], calls: [], results: [] };
      const saved = {
        saved: place,
        protocol: "chat",
        form: {},
        panes: [{ model: "model-test", turns: [turn] }],
      };
      localStorage.setItem(`gatewright.conversation.default.${place}`, JSON.stringify(saved));
    }
    localStorage.setItem("gatewright.conversation.default.broken", "{");
  });
  await send(page, "B");
  await waitForAnswer(page, "one");
  await page.getByText("Earlier (19)").click();
  await page.getByText("Old 29", { exact: true }).first().waitFor();
  assert.equal(await page.getByText("Old 10", { exact: true }).count(), 0);
  await page.getByRole("button", { name: "Delete Old 29" }).click();
  await page.getByText("Earlier (18)").waitFor();
  await tab.close();
});

test("a conversation is exported as JSON and as Markdown", async (t) => {
  const { gateway } = await startWithProvider(t, [["**one**"]]);
  const tab = await browser.open(gateway);
  const { page } = tab;
  await tab.signIn(KEY);
  await send(page, "A");
  await waitForAnswer(page, "one");
  const exported = async (format) => {
    const waiting = page.waitForEvent("download");
    await press(page, `Export ${format}`);
    const download = await waiting;
    return { name: download.suggestedFilename(), text: await readFile(await download.path(), "utf8") };
  };
  const json = await exported("JSON");
  assert.match(json.name, /^conversation-.*\.json$/);
  const { protocol, panes } = JSON.parse(json.text);
  assert.deepEqual([protocol, panes[0].model], ["chat", "model-test"]);
  assert.deepEqual(
    panes[0].turns.map(({ role, text }) => [role, text]),
    [
      ["user", "A"],
      ["assistant", "**one**"],
    ],
  );
  const markdown = await exported("Markdown");
  assert.match(markdown.name, /^conversation-.*\.md$/);
  assert.equal(markdown.text, "# model-test\n\n## You\n\nA\n\n## Model\n\n**one**\n\n");
  await tab.close();
});
