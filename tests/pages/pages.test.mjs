/**
 * The report pages as a browser lays them out. `cargo xtask test pages` creates them and names their folder.
 */

import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import axe from "axe-core";
import { open, withBrowser } from "./browser.mjs";
import { alike, distance, fromPng, picture, settleFonts, style, TOLERANCE, toPng } from "./likeness.mjs";
import { brokenWords, cells, faintTexts, hiddenUnderscores, overflow, partedTimes } from "./measures.mjs";

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
        assert.deepEqual(await page.evaluate(partedTimes), [], "a time and its unit stand on two lines");
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

const EXPECTED = join(import.meta.dirname, "expected");
const takesAnew = process.env.GATEWRIGHT_PICTURES === "new";
const pictureOf = (name, width, scheme) => join(EXPECTED, `${name}-${width}-${scheme}.png`);

/** Opens a page as it is pictured: with its own fonts, and with folded parts left folded. */
async function pictured(name, width, scheme) {
  const page = await open(context, address(name), width, scheme);
  await settleFonts(page);
  return page;
}

for (const name of PAGES) {
  for (const width of WIDTHS) {
    for (const scheme of SCHEMES) {
      test(`${name} at ${width} pixels, ${scheme}: it looks like its picture`, async () => {
        const page = await pictured(name, width, scheme);
        const found = await picture(page);
        const expected = pictureOf(name, width, scheme);
        if (takesAnew) {
          mkdirSync(EXPECTED, { recursive: true });
          writeFileSync(expected, toPng(found));
        }
        assert.ok(existsSync(expected), `${expected} is missing; GATEWRIGHT_PICTURES=new makes it`);
        const by = distance(fromPng(readFileSync(expected)), found);
        if (!alike(by)) {
          const here = join(folder, "pictures");
          const actual = join(here, `${name}-${width}-${scheme}.png`);
          const large = join(here, `${name}-${width}-${scheme}-large.png`);
          mkdirSync(here, { recursive: true });
          writeFileSync(actual, toPng(found));
          await page.screenshot({ path: large, fullPage: true });
          assert.fail(
            `The page looks unlike its picture: it differs by ${by.mean.toFixed(2)} of 255 in the mean (${TOLERANCE.mean} ` +
              `may be) and strongly in ${by.strong.toFixed(2)} % (${TOLERANCE.strong} may be).\nexpected: ${expected}\n` +
              `actual:   ${actual}\nin full:  ${large}\n` +
              "If that is wanted: GATEWRIGHT_PICTURES=new cargo xtask test pages",
          );
        }
        await page.close();
      });
    }
  }
}

test("every stored picture belongs to one of these pages", () => {
  const wanted = new Set(
    PAGES.flatMap((name) =>
      WIDTHS.flatMap((width) => SCHEMES.map((scheme) => pictureOf(name, width, scheme))),
    ),
  );
  const others = readdirSync(EXPECTED)
    .map((file) => join(EXPECTED, file))
    .filter((path) => !wanted.has(path));
  if (takesAnew) for (const path of others) rmSync(path);
  else assert.deepEqual(others, []);
});

/**
 * How far these rules change a page from its own unchanged rendering: its stored picture would introduce
 * noise.
 */
async function distanceWith(name, width, scheme, rules, asScheme = scheme) {
  const before = await pictured(name, width, scheme);
  const after = await pictured(name, width, asScheme);
  await style(after, rules);
  const by = distance(await picture(before), await picture(after));
  await Promise.all([before.close(), after.close()]);
  return by;
}

/** Defects of a page: what it is, the page and the width where it shows, and the rules that cause it. */
const BREAKS = [
  ["a section is missing", "faults", 500, "main section:nth-of-type(2){display:none}"],
  ["the matrix is missing", "passes", 1100, "table.matrix{display:none}"],
  ["a table is missing", "diff", 360, "table:last-of-type{display:none}"],
  ["charts are gone", "trend", 1100, "svg.chart{display:none}"],
  ["charts are blank", "trend", 360, "svg.chart{visibility:hidden}"],
  ["a table is wider than the page", "passes", 360, ".wide{overflow:visible}"],
  ["cells of tables lie below each other", "diff", 1100, "td,th{display:block}"],
  ["cells of tables have no room", "trend", 500, "td,th{padding:0}"],
  ["letters are too large", "trend", 1100, "body{font-size:1.2rem}"],
  ["the page is half as wide", "faults", 1100, "body{max-width:36rem}"],
  ["headings are gone", "trend", 360, "h2,h3{display:none}"],
  ["parts lie on each other", "passes", 500, "section{height:10rem}"],
];
for (const [what, name, width, rules] of BREAKS) {
  for (const scheme of SCHEMES) {
    test(`its picture detects that ${what}: ${name} at ${width} pixels, ${scheme}`, async () => {
      const by = await distanceWith(name, width, scheme, rules);
      assert.ok(!alike(by), JSON.stringify(by));
    });
  }
}

for (const name of PAGES) {
  for (const scheme of SCHEMES) {
    test(`its picture detects the wrong scheme: ${name}, ${scheme}`, async () => {
      const by = await distanceWith(
        name,
        500,
        scheme,
        "",
        SCHEMES.find((other) => other !== scheme),
      );
      assert.ok(!alike(by), JSON.stringify(by));
    });
  }
}

/**
 * Variations that another browser version may introduce: slightly different letter widths or weights, other
 * line wraps.
 */
const HAIRS = [
  ["letters stand wider", "body{letter-spacing:.03px}"],
  ["letters are paler", "body{opacity:.95}"],
  ["a line is added", "header::after,body>h1::after{content:'x';display:block}"],
];
for (const [what, rules] of HAIRS) {
  // One line is too much for the shortest page.
  for (const name of PAGES.filter((page) => page !== "trend-of-one")) {
    test(`its picture tolerates that ${what}: ${name}`, async () => {
      const by = await distanceWith(name, 500, "light", rules);
      assert.ok(alike(by), JSON.stringify(by));
    });
  }
}

/** The findings of axe on a page. Evaluated instead of added: the page's policy allows no scripts. */
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

test("failed cells are open, all others are one line", async () => {
  const page = await open(context, address("faults"), 1100, "light");
  const found = await page.evaluate(cells);
  assert.ok(found.some(({ result }) => result === "fail") && found.some(({ result }) => result === "pass"));
  for (const { result, open: isOpen, shown } of found) {
    assert.equal(isOpen, result === "fail", result);
    assert.equal(shown, isOpen);
  }
  await page.close();
});

test("no width separates a time from its unit", async () => {
  const page = await open(context, address("faults"), 360, "light");
  for (let width = 320; width <= 420; width += 4) {
    await page.setViewportSize({ width, height: 900 });
    assert.deepEqual(await page.evaluate(partedTimes), [], `at ${width} pixels`);
  }
  await page.close();
});

test("a matrix link opens its cell", async () => {
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

test("each check is explained in one line", async () => {
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

test("print uses black ink, has no scrolling parts, and includes the exchanges of failures", async () => {
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

test("the chart of a single report is not a wall of color", async () => {
  const page = await open(context, address("trend-of-one"), 1100, "light");
  assert.equal(await page.locator("svg.chart").count(), 0);
  const bar = await page.locator("svg.results").boundingBox();
  assert.ok(bar.height <= 20 && bar.width <= 500, JSON.stringify(bar));
  await page.close();
});
