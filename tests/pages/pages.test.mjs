/** The pages of reports, as a browser lays them out. `cargo xtask test pages` makes them and names their folder. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import axe from "axe-core";
import { open, withBrowser } from "./browser.mjs";
import { brokenWords, cells, faintTexts, hiddenUnderscores, overflow } from "./measures.mjs";

const WIDTHS = [360, 500, 1100];
const SCHEMES = ["light", "dark"];
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
const PAGES = ["faults", "passes", "diff", "trend", "trend-of-one"];

const folder = process.argv[2] ?? process.env.GATEWRIGHT_PAGES;
const address = (name) => pathToFileURL(join(folder, `${name}.html`)).href;

let context;
let closed;
let close;
before(async () => {
  await new Promise((opened, failed) => {
    closed = withBrowser((browser) => {
      context = browser;
      opened();
      return new Promise((end) => {
        close = end;
      });
    });
    closed.catch(failed);
  });
});
after(async () => {
  close?.();
  await closed;
});

for (const name of PAGES) {
  for (const width of WIDTHS) {
    for (const scheme of SCHEMES) {
      test(`${name} at ${width} pixels, ${scheme}: everything can be read`, async () => {
        const page = await open(context, address(name), width, scheme);
        assert.ok((await page.evaluate(overflow)) <= 0, "the page scrolls sideways");
        assert.deepEqual(await page.evaluate(brokenWords), [], "words are broken inside");
        assert.deepEqual(await page.evaluate(hiddenUnderscores), [], "lines of links hide underscores");
        assert.deepEqual(await page.evaluate(faintTexts), [], "texts are faint");
        await page.evaluate(() => {
          for (const part of document.querySelectorAll("details")) part.open = true;
        });
        assert.ok((await page.evaluate(overflow)) <= 0, "the page scrolls sideways when all is open");
        assert.deepEqual(await page.evaluate(brokenWords), [], "words are broken inside when all is open");
        assert.deepEqual(await page.evaluate(faintTexts), [], "texts are faint when all is open");
        await page.close();
      });
    }
  }
}

/** What axe finds on a page. Evaluated, not added: the policy of the page allows no script. */
async function violations(page) {
  await page.evaluate(axe.source);
  const found = await page.evaluate(
    (values) => globalThis.axe.run({ runOnly: { type: "tag", values } }),
    RULES,
  );
  return found.violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" | ")}`);
}

for (const name of PAGES) {
  for (const scheme of SCHEMES) {
    test(`${name}, ${scheme}: axe finds nothing against WCAG AA, with cells folded and open`, async () => {
      const page = await open(context, address(name), 1100, scheme);
      assert.deepEqual(await violations(page), []);
      await page.evaluate(() => {
        for (const part of document.querySelectorAll("details")) part.open = true;
      });
      assert.deepEqual(await violations(page), [], "when all is open");
      await page.close();
    });
  }
}

test("cells that failed are open, all others are one line", async () => {
  const page = await open(context, address("faults"), 1100, "light");
  const found = await page.evaluate(cells);
  assert.ok(found.some(({ result }) => result === "fail") && found.some(({ result }) => result === "pass"));
  for (const { result, open: isOpen, shown } of found) {
    assert.equal(isOpen, result === "fail", result);
    assert.equal(shown, isOpen);
  }
  await page.close();
});

test("a link of the matrix opens the cell that it leads to", async () => {
  const page = await open(context, address("passes"), 1100, "light");
  const link = page.locator("table.matrix a").nth(3);
  const target = (await link.getAttribute("href")).slice(1);
  const article = page.locator(`article[id="${target}"]`);
  assert.equal(await article.isVisible(), false);
  await link.click();
  await article.waitFor({ state: "visible", timeout: 5000 });
  const box = await page.locator(`details.cell:has(article[id="${target}"]) > summary`).boundingBox();
  assert.ok(box.y >= 0 && box.y < 900, `the heading of the cell is at ${box.y}`);
  await page.close();
});

test("each check is explained in a line", async () => {
  const page = await open(context, address("faults"), 1100, "light");
  const lines = await page
    .locator("dl.checks dd")
    .evaluateAll((all) => all.map((line) => Math.round(line.getBoundingClientRect().height / 24)));
  assert.equal(lines.length, 6);
  assert.deepEqual(new Set(lines), new Set([1]));
  await page.close();
});

test("a keyboard reaches every link, cell and wide table", async () => {
  const page = await open(context, address("faults"), 500, "light");
  const wanted = await page
    .locator('a, summary, [tabindex="0"]')
    .evaluateAll((all) => all.filter((one) => one.checkVisibility()).length);
  const reached = new Set();
  for (let step = 0; step < wanted; step += 1) {
    await page.keyboard.press("Tab");
    reached.add(
      await page.evaluate(() => [...document.querySelectorAll("*")].indexOf(document.activeElement)),
    );
  }
  assert.equal(reached.size, wanted);
  await page.close();
});

test("paper has black ink, no scrolling parts, and exchanges of what failed", async () => {
  const page = await open(context, address("faults"), 1100, "dark");
  await page.emulateMedia({ media: "print", colorScheme: "dark" });
  const found = await page.evaluate(() => {
    const style = (selector) => getComputedStyle(document.querySelector(selector));
    const visible = (element) => element.checkVisibility({ contentVisibilityAuto: true });
    const wide = [...document.querySelectorAll(".wide, pre")].filter(visible);
    return {
      ink: style("body").color,
      paper: style("body").backgroundColor,
      hidden: wide.filter((part) => getComputedStyle(part).overflowX !== "visible").length,
      folded: [...document.querySelectorAll("details.cell[open] pre")].filter((part) => !visible(part))
        .length,
      quoted: document.querySelectorAll("details.cell[open] pre").length,
      passing: [...document.querySelectorAll("details.cell:not([open]) article")].filter(visible).length,
    };
  });
  assert.equal(found.ink, "rgb(0, 0, 0)");
  assert.equal(found.paper, "rgb(255, 255, 255)");
  assert.equal(found.hidden, 0);
  assert.ok(found.quoted > 0);
  assert.equal(found.folded, 0);
  assert.equal(found.passing, 0);
  const pdf = await page.pdf({ format: "A4" });
  assert.equal(pdf.subarray(0, 5).toString(), "%PDF-");
  await page.close();
});

test("the chart of one report is no wall of colour", async () => {
  const page = await open(context, address("trend-of-one"), 1100, "light");
  assert.equal(await page.locator("svg.chart").count(), 0);
  const bar = await page.locator("svg.results").boundingBox();
  assert.ok(bar.height <= 20 && bar.width <= 500, JSON.stringify(bar));
  await page.close();
});
