/**
 * Small pictures of pages, and how far two of them are from each other.
 *
 * A picture has a pixel for each square of 8 by 8 of the page, which is their mean: letters become grey, while bars, tables,
 * colours and gaps stay. Two pictures are laid row against row as a diff lays lines, so that a line more or less, where a
 * word wraps elsewhere, does not move all that follows.
 */

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { PNG } from "pngjs";

/** How many pixels of the page, across and down, are one of the picture. */
export const SQUARE = 8;
/** How much of a high page is looked at, in pixels of the page. */
export const HIGHEST = 3000;
/** Colours are rounded to multiples of this, which makes files half as large. */
const SHADES = 8;
/** A pixel differs strongly where its red, green or blue does by more than this, of 255. */
export const STRONG = 40;
/**
 * What two pictures of one page may differ by: their mean difference, of 255, and how many of 100 pixels strongly. Another
 * run on the same machine, whose ids are others, differed by 0.6 and 0.3 at most; other hinting and another font of the
 * machine by nothing. A layout that breaks differs by more than 2.3 in the mean, or strongly in more than 4 of 100.
 */
export const TOLERANCE = { mean: 2, strong: 2 };

/** The faces that stand in for those of the machine: weight, and the file of the package. */
const FACES = [
  ["Pictured", 400, "noto-sans/files/noto-sans-latin-400-normal.woff2"],
  ["Pictured", 700, "noto-sans/files/noto-sans-latin-700-normal.woff2"],
  ["Pictured Mono", 400, "noto-sans-mono/files/noto-sans-mono-latin-400-normal.woff2"],
  ["Pictured Mono", 700, "noto-sans-mono/files/noto-sans-mono-latin-700-normal.woff2"],
].map(([family, weight, file]) => {
  const path = createRequire(import.meta.url).resolve(`@fontsource/${file}`);
  return { family, weight, bytes: readFileSync(path).toString("base64") };
});
// Widths of letters are those of the face, whatever hinting a machine has.
const STYLE =
  "body{font-family:Pictured,sans-serif!important;text-rendering:geometricPrecision!important}code,pre,.address{font-family:Pictured Mono,monospace!important}";

/** Adds rules to a page. The policy of the page allows no element of style. */
export async function style(page, rules) {
  await page.evaluate((text) => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(text);
    document.adoptedStyleSheets.push(sheet);
  }, rules);
}

/** Lets a page use the faces of this folder, so that it is as wide on a machine that has others. */
export async function settleFonts(page) {
  await page.evaluate(async (faces) => {
    for (const { family, weight, bytes } of faces) {
      const data = Uint8Array.from(atob(bytes), (character) => character.charCodeAt(0));
      document.fonts.add(await new FontFace(family, data.buffer, { weight: String(weight) }).load());
    }
  }, FACES);
  await style(page, STYLE);
}

/** The small picture of a page: as wide as all that it holds, and without the blank below it. */
export async function picture(page) {
  const { width, height } = await page.evaluate(() => ({
    width: document.documentElement.scrollWidth,
    height: Math.ceil(document.body.getBoundingClientRect().height),
  }));
  const clip = { x: 0, y: 0, width, height: Math.min(height, HIGHEST) };
  return shrunk(PNG.sync.read(await page.screenshot({ fullPage: true, clip, animations: "disabled" })));
}

/** Each square as its mean. What is left at the right and at the bottom are squares, too. */
function shrunk({ width, height, data }) {
  const small = {
    width: Math.ceil(width / SQUARE),
    height: Math.ceil(height / SQUARE),
    data: Buffer.alloc(Math.ceil(width / SQUARE) * Math.ceil(height / SQUARE) * 3),
  };
  for (let row = 0; row < small.height; row += 1) {
    for (let column = 0; column < small.width; column += 1) {
      const sum = [0, 0, 0];
      const right = Math.min(width, (column + 1) * SQUARE);
      const foot = Math.min(height, (row + 1) * SQUARE);
      for (let y = row * SQUARE; y < foot; y += 1) {
        for (let x = column * SQUARE; x < right; x += 1) {
          for (let part = 0; part < 3; part += 1) sum[part] += data[(y * width + x) * 4 + part];
        }
      }
      const pixels = (right - column * SQUARE) * (foot - row * SQUARE);
      for (let part = 0; part < 3; part += 1) {
        small.data[(row * small.width + column) * 3 + part] = rounded(sum[part] / pixels);
      }
    }
  }
  return small;
}

function rounded(value) {
  return Math.min(255, Math.round(value / SHADES) * SHADES);
}

/** A small picture as PNG. */
export function toPng({ width, height, data }) {
  const options = { colorType: 2, inputColorType: 2, inputHasAlpha: false, deflateLevel: 9 };
  return PNG.sync.write(Object.assign(new PNG({ width, height }), { data }), options);
}

/** A small picture from PNG. */
export function fromPng(bytes) {
  const { width, height, data } = PNG.sync.read(bytes);
  return { width, height, data: data.filter((_, index) => index % 4 !== 3) };
}

/** What two rows differ by: the sum over all parts of pixels, and how many pixels do strongly. */
function rowsDiffer(one, row, other, otherRow) {
  let sum = 0;
  let strong = 0;
  let at = row * one.width * 3;
  let otherAt = otherRow * one.width * 3;
  for (let column = 0; column < one.width; column += 1) {
    let most = 0;
    for (let part = 0; part < 3; part += 1) {
      const by = Math.abs(one.data[at] - other.data[otherAt]);
      sum += by;
      if (by > most) most = by;
      at += 1;
      otherAt += 1;
    }
    if (most > STRONG) strong += 1;
  }
  return { sum, strong };
}

/**
 * How far two small pictures are from each other, as `TOLERANCE` has it. A row that only one of them has differs strongly in
 * half of its pixels. Pictures of pages of other widths have nothing in common.
 */
export function distance(one, other) {
  if (one.width !== other.width) return { mean: 255, strong: 100 };
  const parts = one.width * 3;
  const columns = other.height + 1;
  const costs = new Float64Array((one.height + 1) * columns);
  const steps = new Uint8Array(costs.length);
  for (let row = 0; row <= one.height; row += 1) {
    for (let column = 0; column <= other.height; column += 1) {
      if (row === 0 && column === 0) continue;
      const at = row * columns + column;
      const above = row > 0 ? costs[at - columns] + 1 : Infinity;
      const before = column > 0 ? costs[at - 1] + 1 : Infinity;
      let both = Infinity;
      if (row > 0 && column > 0) {
        const { sum, strong } = rowsDiffer(one, row - 1, other, column - 1);
        both = costs[at - columns - 1] + strong / one.width + sum / parts / 255;
      }
      costs[at] = Math.min(both, above, before);
      steps[at] = both <= above && both <= before ? 0 : above <= before ? 1 : 2;
    }
  }
  let [row, column, sum, strong, rows, pairs] = [one.height, other.height, 0, 0, 0, 0];
  while (row > 0 || column > 0) {
    const step = steps[row * columns + column];
    rows += 1;
    if (step === 0) {
      const found = rowsDiffer(one, row - 1, other, column - 1);
      sum += found.sum;
      strong += found.strong;
      pairs += 1;
    } else {
      strong += one.width / 2;
    }
    if (step !== 2) row -= 1;
    if (step !== 1) column -= 1;
  }
  return { mean: sum / Math.max(1, pairs * parts), strong: (strong / (rows * one.width)) * 100 };
}

/** Whether two pictures are of one page, by what they differ by. */
export function alike({ mean, strong }) {
  return mean <= TOLERANCE.mean && strong <= TOLERANCE.strong;
}
