// Judges what a page shows by axe's WCAG AA rules.
import assert from "node:assert/strict";
import axe from "axe-core";

const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

/** Fails if what a tab shows violates a rule, or is wider than its window. `place`: what it shows. */
export async function judge(tab, place) {
  // Evaluated, not injected: the page's policy allows no inline script.
  await tab.page.evaluate(axe.source);
  // A report's page is in a frame without scripts, which axe can't enter; tests/pages checks it.
  const judged = (values) => globalThis.axe.run({ runOnly: { type: "tag", values }, iframes: false });
  const { violations } = await tab.page.evaluate(judged, RULES);
  const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" | ")}`);
  assert.deepEqual(found, [], place);
  const wide = await tab.page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(wide <= 0, `${place} is ${wide} px too wide`);
}
