// The API reference: every operation, and requests sent from it.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { KEY, startBrowser, startGateway } from "./support.mjs";

let gateway;
let browser;
before(async () => {
  [gateway, browser] = await Promise.all([startGateway(), startBrowser()]);
});
after(() => Promise.all([gateway.stop(), browser.close()]));

test("every operation of the specification is shown, with its members", async () => {
  const text = await readFile(new URL("../../spec/generated/openapi-3.2.json", import.meta.url), "utf8");
  const operations = Object.values(JSON.parse(text).paths).flatMap((methods) =>
    Object.values(methods).filter((operation) => operation.operationId),
  );
  assert.ok(operations.length >= 18);
  const tab = await browser.open(gateway);
  await tab.signIn(KEY);
  for (const { operationId, summary } of operations) {
    await tab.go(`reference/${operationId}`);
    await tab.page.getByRole("heading", { name: summary, exact: true }).waitFor();
  }
  await tab.go("reference/create_chat_completion");
  const messages = tab.page.locator(".members > li").filter({ hasText: "messages" }).first();
  await messages.locator("summary").first().click();
  await messages.locator(".members > li").first().waitFor();
  await tab.close();
});

test("stream events are shown as the documents that they contain", async () => {
  const tab = await browser.open(gateway);
  await tab.signIn(KEY);
  const response = tab.page.locator("#response");
  for (const [operation, events] of [
    ["create_chat_completion", ["ChatCompletionChunk as JSON", "choices"]],
    ["create_response", ["ResponseStreamEvent as JSON", 'type "response.output_text.delta"']],
    ["create_message", ["MessageStreamEvent as a JSON string", 'type "content_block_delta"']],
    ["stream_generate_content", ["GenerateContentResponse as a JSON string", "candidates"]],
  ]) {
    await tab.go(`reference/${operation}`);
    const data = response.locator(".members > li").filter({ has: tab.page.locator("details[open]") });
    for (const shown of events) await data.getByText(shown).first().waitFor();
  }
  await tab.close();
});

test("parameters and members have their types, defaults and bounds", async () => {
  const tab = await browser.open(gateway);
  await tab.signIn(KEY);
  await tab.go("reference/list_response_input_items");
  const described = (section, name) =>
    tab.page
      .locator(`#${section} > .members > li`)
      .filter({ has: tab.page.locator("code.name", { hasText: new RegExp(`^${name}$`) }) })
      .textContent();
  assert.match(await described("parameters", "limit"), /integer, in query.*default 20; 1 to 100/);
  assert.match(
    await described("parameters", "order"),
    /string, in query.*one of "asc", "desc"; default "desc"/,
  );
  assert.match(await described("parameters", "response_id"), /string, in path required/);
  await tab.go("reference/create_chat_completion");
  assert.match(await described("body", "temperature"), /number or null.*0 to 2/);
  await tab.close();
});

test("a link's target is in view: an operation, its place in the list, and a section", async () => {
  for (const width of [1440, 1024, 360]) {
    const tab = await browser.open(gateway, { width, height: 800 });
    const { page } = tab;
    await tab.signIn(KEY);
    const inView = (selector) =>
      page.waitForFunction((wanted) => {
        const element = document.querySelector(wanted);
        const { top, bottom } = element?.getBoundingClientRect() ?? { top: -1, bottom: -1 };
        const frame = element?.closest("nav")?.getBoundingClientRect() ?? { top: 0, bottom: innerHeight };
        return top >= frame.top - 1 && Math.min(bottom, top + 20) <= frame.bottom + 1;
      }, selector);
    await tab.go("reference/create_video");
    await inView(".operation h2");
    await inView(".reference nav [aria-current]");
    await tab.go("reference/create_chat_completion/response");
    await inView("#response h3");
    await page.locator("#try-it h3 a").click();
    await inView("#try-it h3");
    await tab.go("reference/list_models");
    await inView(".operation h2");
    await tab.close();
  }
});

test("requests can be tried, including one with parameters and one that streams", async () => {
  const tab = await browser.open(gateway);
  await tab.signIn(KEY);
  await tab.go("reference/retrieve_model");
  await tab.page.getByLabel("model", { exact: true }).fill("model-sol");
  await tab.page.getByRole("button", { name: "Send GET" }).click();
  await tab.page.getByRole("region", { name: "The response" }).getByText('"id": "model-sol"').waitFor();
  await tab.go("reference/create_chat_completion");
  const body = { model: "model-sol", messages: [{ role: "user", content: "Say hello." }], stream: true };
  await tab.page.getByLabel("Body").fill(JSON.stringify(body));
  await tab.page.getByRole("button", { name: "Send POST" }).click();
  await tab.page.getByRole("region", { name: "The response" }).getByText("data: [DONE]").waitFor();
  await tab.page.getByLabel("Body").fill("{");
  await tab.page.getByRole("button", { name: "Send POST" }).click();
  await tab.page.getByRole("alert").getByText("The body isn't valid JSON").waitFor();
  await tab.close();
});
