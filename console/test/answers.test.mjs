// Answers in Markdown: as elements, never as markup, and with only the last block rendered again while they arrive.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { judge } from "./judge.mjs";
import { KEY, startBrowser, startWithProvider } from "./support.mjs";

let browser;
before(async () => {
  browser = await startBrowser();
});
after(() => browser.close());

const ANSWER = `## A plan

Use **both** \`a\` and *b*, see [the docs](https://docs.example/x) or [this](javascript:alert(1)), [that](mailto:a@docs.example) or <b@docs.example>.
<img src=x onerror=alert(1)> 1 &lt; 2 ![a chart](https://pictures.example/c.png)

1. first
   - [x] done
   - [ ] open
2. second

> quoted

| name | count |
|:-----|------:|
| one  | 1     |

\`\`\`python
print("<b>a long line ${"of code ".repeat(30)}</b>")
\`\`\`

Read [the end][1].

[1]: https://docs.example/end
`;

const ask = async (page, text) => {
  await page.getByRole("textbox", { name: "Message" }).fill(text);
  await page.getByRole("button", { name: "Send", exact: true }).click();
};
/** The pieces of a text, as a model sends them. */
const pieces = (text) => text.match(/.{1,12}/gs);

test("an answer is shown as Markdown, without markup, foreign addresses or images", async (t) => {
  const { gateway } = await startWithProvider(t, [pieces(ANSWER)]);
  for (const [scheme, width] of [
    ["light", 1280],
    ["dark", 360],
  ]) {
    const tab = await browser.open(gateway, { scheme, width });
    await tab.signIn(KEY);
    await ask(tab.page, "A plan, please.");
    const answer = tab.page.locator(".turn.assistant");
    await answer.getByRole("button", { name: "Copy answer" }).waitFor();
    await answer.getByRole("heading", { name: "A plan" }).waitFor();
    const links = await answer.getByRole("link").evaluateAll((all) => all.map((link) => link.href));
    assert.deepEqual(links, [
      "https://docs.example/x",
      "https://pictures.example/c.png",
      "https://docs.example/end",
    ]);
    assert.equal(await answer.locator("img, script, b").count(), 0);
    const text = await answer.textContent();
    for (const part of ["<img src=x onerror=alert(1)>", "1 < 2", "☑ done", "☐ open"]) {
      assert.ok(text.includes(part), `${part} in ${text}`);
    }
    assert.equal(await answer.locator("ol > li").count(), 2);
    assert.equal(await answer.getByRole("cell", { name: "1", exact: true }).count(), 1);
    await judge(tab, `an answer in Markdown, ${scheme}, ${width} px`);
    await tab.close();
  }
});

test("code and answers are copied as they were sent, and the raw text can be shown", async (t) => {
  const { gateway } = await startWithProvider(t, [pieces(ANSWER)]);
  const tab = await browser.open(gateway);
  await tab.signIn(KEY);
  await ask(tab.page, "A plan, please.");
  const answer = tab.page.locator(".turn.assistant");
  const copied = async (name) => {
    await answer.getByRole("button", { name }).click();
    await answer.getByRole("status").getByText("Copied").first().waitFor();
    return tab.page.evaluate(() => navigator.clipboard.readText());
  };
  assert.equal(await copied("Copy answer"), ANSWER);
  assert.equal(await copied("Copy code"), ANSWER.match(/print.*/)[0]);
  const raw = answer.getByRole("button", { name: "Raw text" });
  await raw.click();
  assert.equal(await answer.locator(".text").textContent(), ANSWER);
  await raw.click();
  await answer.getByRole("heading", { name: "A plan" }).waitFor();
  await tab.close();
});

test("while an answer arrives, only its last block changes", async (t) => {
  const blocks = 40;
  const text = Array.from({ length: blocks }, (_, place) => `Paragraph **${place}** of many.\n\n`).join("");
  const { gateway } = await startWithProvider(t, [[...text.match(/.+\n\n/g), "The end."]]);
  const tab = await browser.open(gateway);
  await tab.signIn(KEY);
  await tab.page.evaluate(() => {
    window.changed = [];
    new MutationObserver((records) => {
      const all = [...document.querySelectorAll(".markdown > *")];
      for (const { target } of records) {
        const place = all.findIndex((block) => block.contains(target));
        if (place >= 0) window.changed.push(all.length - place);
      }
    }).observe(document.querySelector("[role=log]"), { subtree: true, childList: true, characterData: true });
  });
  await ask(tab.page, "Many, please.");
  await tab.page.getByText("The end.").waitFor();
  assert.equal(await tab.page.locator(".markdown > p").count(), blocks + 1);
  const changed = await tab.page.evaluate(() => window.changed);
  assert.ok(Math.max(0, ...changed) <= 2, changed.join());
  await tab.close();
});

test("a text that nests too deeply is shown as it is", async (t) => {
  const deep = `${">".repeat(3000)}deep\n\n${"- ".repeat(100)}nested`;
  const { gateway } = await startWithProvider(t, [[deep]]);
  const tab = await browser.open(gateway);
  await tab.signIn(KEY);
  await ask(tab.page, "Deep, please.");
  await tab.page.locator(".turn.assistant").getByText("nested").waitFor();
  await tab.close();
});
