// Reports: the page of a report, the comparison of two, and the problems in an invalid one.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { BLOCKED, KEY, startBrowser, startGateway } from "./support.mjs";

const GOOD = new URL("../../examples/reports/good.json", import.meta.url).pathname;
const BROKEN = new URL("../../examples/reports/broken.json", import.meta.url).pathname;
let gateway;
let browser;
before(async () => {
  [gateway, browser] = await Promise.all([startGateway(), startBrowser()]);
});
after(() => Promise.all([gateway.stop(), browser.close()]));

const choose = (page, label, files) =>
  page.getByRole("region", { name: label, exact: true }).locator("input[type=file]").setInputFiles(files);

test("a report is shown with its style, in a frame that runs nothing", async () => {
  // The frame also blocks the script with which this test inspects it.
  const tab = await browser.open(gateway, { expected: [BLOCKED] });
  await tab.signIn(KEY);
  await tab.go("reports");
  await choose(tab.page, "Report", GOOD);
  const frame = tab.page.frameLocator("iframe.report");
  await frame.getByRole("heading", { name: "Checks and models" }).waitFor();
  // The page's style applies: its table has borders.
  const border = await frame
    .locator("td")
    .first()
    .evaluate((cell) => getComputedStyle(cell).borderTopWidth);
  assert.equal(border, "1px");
  assert.equal(await tab.page.locator("iframe.report").getAttribute("sandbox"), "allow-same-origin");
  // A link in the page leads to its target in the frame.
  await frame.getByRole("link", { name: "pass" }).first().click();
  await frame.locator("article:target").waitFor();
  await tab.close();
});

test("a report can be dropped onto its drop zone", async () => {
  const tab = await browser.open(gateway, { expected: [BLOCKED] });
  await tab.signIn(KEY);
  await tab.go("reports");
  const { page } = tab;
  const input = await tab.context.newCDPSession(page);
  // Simulates dragging files in from outside: an event created by a page can't contain files from the disk.
  const drop = async (file) => {
    const box = await page
      .getByRole("region", { name: "Report", exact: true })
      .locator(".dropzone")
      .boundingBox();
    const at = { x: box.x + box.width - 9, y: box.y + box.height / 2 };
    const data = { items: [], files: [file], dragOperationsMask: 1 };
    for (const type of ["dragEnter", "dragOver", "drop"]) {
      await input.send("Input.dispatchDragEvent", { type, ...at, data });
    }
  };
  await drop(new URL("../../examples/python/chat.py", import.meta.url).pathname);
  await page.getByRole("alert").getByText("chat.py was rejected").waitFor();
  await drop(GOOD);
  await page.getByText("good.json", { exact: true }).waitFor();
  const frame = page.frameLocator("iframe.report");
  await frame.getByRole("heading", { name: "Checks and models" }).waitFor();
  assert.equal(await page.getByRole("alert").count(), 0);
  await tab.close();
});

test("a report about models of other names is shown and compared like any other", async () => {
  const report = (await readFile(GOOD, "utf8")).replaceAll("model-sol", "gpt-5");
  const slower = JSON.parse(report);
  for (const check of slower.checks) if (check.duration_ms) check.duration_ms = check.duration_ms * 10 + 5000;
  const tab = await browser.open(gateway);
  await tab.signIn(KEY);
  await tab.go("reports");
  const file = (name, text) => ({ name, mimeType: "application/json", buffer: Buffer.from(text) });
  const frame = tab.page.frameLocator("iframe.report");
  await choose(tab.page, "Report", file("old.json", report));
  await frame.getByRole("columnheader", { name: "gpt-5" }).waitFor();
  await choose(tab.page, "Older report", file("old.json", report));
  await choose(tab.page, "Report", file("new.json", JSON.stringify(slower)));
  await frame.getByRole("heading", { name: "Slower" }).waitFor();
  assert.equal(await tab.page.getByRole("alert").count(), 0);
  await tab.close();
});

test("two reports are compared", async () => {
  const report = JSON.parse(await readFile(GOOD, "utf8"));
  const slower = structuredClone(report);
  for (const check of slower.checks) if (check.duration_ms) check.duration_ms = check.duration_ms * 10 + 5000;
  const tab = await browser.open(gateway);
  await tab.signIn(KEY);
  await tab.go("reports");
  const file = (name, document) => ({
    name,
    mimeType: "application/json",
    buffer: Buffer.from(JSON.stringify(document)),
  });
  await choose(tab.page, "Older report", file("old.json", report));
  await tab.page.getByText("Now open the newer one.").waitFor();
  await choose(tab.page, "Report", file("new.json", slower));
  const frame = tab.page.frameLocator("iframe.report");
  await frame.getByRole("heading", { name: "Slower" }).waitFor();
  await tab.close();
});

test("problems in a report are shown with lines and columns", async () => {
  const tab = await browser.open(gateway);
  await tab.signIn(KEY);
  await tab.go("reports");
  await choose(tab.page, "Report", BROKEN);
  const alert = tab.page.getByRole("alert");
  await alert.getByText("broken.json is not a valid report.").waitFor();
  assert.match(await alert.textContent(), /\d+:\d+/);
  await tab.close();
});

test("markup in a report stays text", async () => {
  const report = JSON.parse(await readFile(GOOD, "utf8"));
  const check = report.checks.find((each) => each.status === "skip") ?? report.checks[0];
  if ("reason" in check) check.reason = "<img src=x onerror=alert(1)><script>alert(2)</script>";
  report.endpoint = report.endpoint.replace(/\/$/, "");
  const answer = await gateway.call("/console/report", {
    method: "POST",
    body: { report: JSON.stringify(report) },
  });
  const { html } = await answer.json();
  assert.ok(typeof html === "string");
  assert.doesNotMatch(html, /<script|<img/);
});
