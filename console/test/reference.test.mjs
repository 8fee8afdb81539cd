// The API reference: every operation, and requests from it.
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

test("every operation of the specification is there, with its members", async () => {
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

test("a request can be tried, also one with parameters and one that streams", async () => {
  const tab = await browser.open(gateway);
  await tab.signIn(KEY);
  await tab.go("reference/retrieve_model");
  await tab.page.getByLabel("model", { exact: true }).fill("model-sol");
  await tab.page.getByRole("button", { name: "Send GET" }).click();
  await tab.page.getByRole("region", { name: "The answer" }).getByText('"id": "model-sol"').waitFor();
  await tab.go("reference/create_chat_completion");
  const body = { model: "model-sol", messages: [{ role: "user", content: "Say hello." }], stream: true };
  await tab.page.getByLabel("Body").fill(JSON.stringify(body));
  await tab.page.getByRole("button", { name: "Send POST" }).click();
  await tab.page.getByRole("region", { name: "The answer" }).getByText("data: [DONE]").waitFor();
  await tab.page.getByLabel("Body").fill("{");
  await tab.page.getByRole("button", { name: "Send POST" }).click();
  await tab.page.getByRole("alert").getByText("The body is not JSON").waitFor();
  await tab.close();
});
