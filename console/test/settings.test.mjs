// The playground's settings and files, in each protocol, and answers that are reasoned about or not streamed.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { judge } from "./judge.mjs";
import { KEY, REFUSED, startBrowser, startGateway, startWithProvider } from "./support.mjs";

let gateway;
let browser;
before(async () => {
  [gateway, browser] = await Promise.all([startGateway(), startBrowser()]);
});
after(() => Promise.all([gateway.stop(), browser.close()]));

const PROTOCOLS = ["Chat", "Responses", "Messages", "Native"];
const SCHEMA = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
/** Sends a message, and waits for the answer. Returns the request, and its body. */
async function ask(page, text) {
  const answered = page.waitForResponse((response) => response.request().method() === "POST");
  await page.getByRole("textbox", { name: "Message", exact: true }).fill(text);
  await page.getByRole("button", { name: "Send", exact: true }).click();
  const response = await answered;
  if (response.status() !== 200) assert.fail(`${response.url()}: ${await response.text()}`);
  await page.getByText("Finish reason").waitFor();
  // Until the stream ends, the answer is shown as one that grows.
  await page.getByRole("button", { name: "Send", exact: true }).waitFor();
  return { url: response.url(), body: response.request().postDataJSON() };
}
const clear = (page) => page.getByRole("button", { name: "Clear", exact: true }).click();
const openTab = (page, name) => page.getByRole("tab", { name, exact: true }).click();

/** What each protocol calls the settings. */
const SENT = {
  Chat: ({ top_p, stop, seed, reasoning_effort, response_format }) => ({
    top_p,
    stop,
    seed,
    reasoning_effort,
    schema: response_format.json_schema.schema,
  }),
  Responses: ({ top_p, reasoning, text }) => ({
    top_p,
    reasoning_effort: reasoning.effort,
    schema: text.format.schema,
  }),
  Messages: ({ top_p, stop_sequences, output_config }) => ({
    top_p,
    stop: stop_sequences,
    reasoning_effort: output_config.effort,
    schema: output_config.format.schema,
  }),
  Native: ({ generationConfig: { topP, stopSequences, seed, thinkingConfig, responseJsonSchema } }) => ({
    top_p: topP,
    stop: stopSequences,
    seed,
    reasoning_effort: thinkingConfig.thinkingLevel,
    schema: responseJsonSchema,
  }),
};

test("settings are sent in the form of each protocol, which shows only those that it has", async () => {
  const tab = await browser.open(gateway);
  const { page } = tab;
  await tab.signIn(KEY);
  await page.getByText("More settings").click();
  await page.getByLabel("Top P").fill("0.5");
  await page.getByLabel("Stop sequences").fill("END\nSTOP");
  await page.getByLabel("Seed").fill("7");
  await page.getByLabel("Reasoning effort").selectOption("low");
  await page.getByLabel("JSON schema").fill(JSON.stringify(SCHEMA));
  for (const protocol of PROTOCOLS) {
    await openTab(page, protocol);
    const { body } = await ask(page, "Name a city.");
    const sent = SENT[protocol](body);
    const all = { top_p: 0.5, stop: ["END", "STOP"], seed: 7, reasoning_effort: "low", schema: SCHEMA };
    for (const name of ["stop", "seed"]) {
      const label = name === "stop" ? "Stop sequences" : "Seed";
      if (!(name in sent)) delete all[name];
      // Not shown once the protocol lacks it. The fields of another protocol may still be there.
      await page.getByLabel(label).waitFor({ state: name in sent ? "attached" : "detached" });
    }
    assert.deepEqual(sent, all, protocol);
    const answer = JSON.parse(await page.locator(".turn.assistant .markdown").last().textContent());
    assert.equal(typeof answer.city, "string", protocol);
    await clear(page);
  }
  await tab.close();
});

test("the choice of a tool is sent, and its call arrives, in every protocol", async () => {
  const tab = await browser.open(gateway);
  const { page } = tab;
  await tab.signIn(KEY);
  await page.getByRole("button", { name: "Fill in an example" }).click();
  await page.getByText("More settings").click();
  for (const choice of ["required", "get_weather"]) {
    await page.getByLabel("Tool choice").selectOption(choice);
    for (const protocol of PROTOCOLS) {
      await openTab(page, protocol);
      await ask(page, "Hello.");
      await page.getByLabel("Result of get_weather").waitFor();
      await clear(page);
    }
  }
  await tab.close();
});

test("an answer that isn't streamed is shown with its usage and calls, in every protocol", async () => {
  const tab = await browser.open(gateway);
  const { page } = tab;
  await tab.signIn(KEY);
  await page.getByText("More settings").click();
  await page.getByLabel("Stream the answer").uncheck();
  for (const protocol of PROTOCOLS) {
    await openTab(page, protocol);
    const { url, body } = await ask(page, `Reply with exactly: hello ${protocol}`);
    assert.ok(!("stream" in body) && !url.includes("stream"), url);
    await page.getByRole("log").getByText(`hello ${protocol}`, { exact: true }).waitFor();
    const facts = await page
      .getByRole("region", { name: "Conversation", exact: true })
      .locator("dl")
      .textContent();
    for (const name of ["Total", "Input", "Output"]) assert.ok(facts.includes(name), facts);
    assert.ok(!facts.includes("First token"), facts);
    await clear(page);
  }
  await page.getByRole("button", { name: "Fill in an example" }).click();
  for (const protocol of PROTOCOLS) {
    await openTab(page, protocol);
    await ask(page, "Call get_weather for Lisbon.");
    await page.getByLabel("Result of get_weather").fill("sunny");
    const answered = page.waitForResponse((response) => response.request().method() === "POST");
    await page.getByRole("button", { name: "Send the result" }).click();
    assert.equal((await answered).status(), 200, protocol);
    await clear(page);
  }
  await tab.close();
});

test("reasoning is shown apart from the answer, and isn't sent again", async (t) => {
  const answer = [{ reasoning_content: "Let me " }, { reasoning_content: "see." }, "one"];
  const reasoned = await startWithProvider(t, [answer]);
  const tab = await browser.open(reasoned.gateway);
  const { page } = tab;
  await tab.signIn(KEY);
  for (const protocol of PROTOCOLS) {
    await openTab(page, protocol);
    await ask(page, "A");
    const turn = page.locator(".turn.assistant");
    await turn.getByText("Reasoning", { exact: true }).click();
    await turn.getByText("Let me see.", { exact: true }).waitFor();
    assert.equal(await turn.locator(".markdown").textContent(), "one");
    await judge(tab, `reasoning, ${protocol}`);
    const { body } = await ask(page, "B");
    assert.ok(!JSON.stringify(body).includes("Let me"), protocol);
    await clear(page);
  }
  await tab.close();
});

test("PDF and audio files are sent where the protocol takes them, and are refused where it doesn't", async (t) => {
  const { gateway: through, bodies } = await startWithProvider(t, [["seen"]]);
  const tab = await browser.open(through, { expected: [REFUSED] });
  const { page } = tab;
  await tab.signIn(KEY);
  const pdf = Buffer.from("%PDF-1.4\n%%EOF\n");
  const choose = async (name, mimeType, buffer) => {
    await page.locator("input[type=file]").setInputFiles({ name, mimeType, buffer });
  };
  for (const protocol of PROTOCOLS) {
    await openTab(page, protocol);
    await choose("a.pdf", "application/pdf", pdf);
    await page.getByRole("button", { name: "Remove a.pdf" }).waitFor();
    const { body } = await ask(page, "What is in it?");
    assert.ok(JSON.stringify(body).includes(pdf.toString("base64")), protocol);
    assert.ok(JSON.stringify(bodies.at(-1)).includes(pdf.toString("base64")), protocol);
    await page.getByRole("article").getByText("a.pdf", { exact: true }).waitFor();
    await clear(page);
  }
  const wav = Buffer.from("RIFF\x24\0\0\0WAVEfmt ");
  for (const protocol of ["Chat", "Native"]) {
    await openTab(page, protocol);
    await choose("a.wav", "audio/wav", wav);
    await page.getByRole("button", { name: "Remove a.wav" }).waitFor();
    const { body } = await ask(page, "What is said?");
    assert.ok(JSON.stringify(body).includes(wav.toString("base64")), protocol);
    if (protocol === "Chat") await clear(page);
  }
  // A conversation with a file that another protocol doesn't take.
  await openTab(page, "Messages");
  await page.getByText("Messages takes no audio/wav: remove a.wav, or choose another protocol.").waitFor();
  await choose("b.wav", "audio/wav", wav);
  await page.getByText("b.wav was rejected: its file type isn't supported.").waitFor();
  await tab.close();
});

test("a long pasted text is a file, so that typing lays out and renders nothing long, and is sent as text", async () => {
  const tab = await browser.open(gateway);
  const { page } = tab;
  await tab.signIn(KEY);
  const long = `${"word ".repeat(12)}\n`.repeat(5000);
  const message = page.getByRole("textbox", { name: "Message", exact: true });
  const paste = async (text) => {
    await page.evaluate((copied) => navigator.clipboard.writeText(copied), text);
    await message.focus();
    await page.keyboard.press("Control+v");
  };
  await paste("Summarize: ");
  await paste(long);
  await page.getByRole("button", { name: /Remove pasted text 1 \(29\d\.\d KiB\)/ }).waitFor();
  await page.keyboard.type("it");
  assert.equal(await message.inputValue(), "Summarize: it");
  const size = await page.evaluate(() => document.querySelector("main").textContent.length);
  assert.ok(size < 20_000, `the page shows ${size} characters`);
  await judge(tab, "a pasted text");
  for (const protocol of PROTOCOLS) {
    await openTab(page, protocol);
    const { body } = await ask(page, "Summarize:");
    assert.ok(JSON.stringify(body).includes(JSON.stringify(`Summarize:\n\n${long}`)), protocol);
    await clear(page);
    await paste(long);
  }
  await tab.close();
});
