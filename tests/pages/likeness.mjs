/**
 * Small pictures of pages, and the distance of two of them.
 *
 * Each pixel of a picture is the mean of a square of 8 by 8 pixels of the page: letters become gray, while bars, tables,
 * colors and gaps remain. The rows of two pictures are aligned as a diff aligns lines, so that an additional or missing
 * line, where a word wraps differently, does not shift everything below.
 */

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { PNG } from "pngjs";

/** How many pixels of the page, across and down, make one pixel of the picture. */
export const SQUARE = 8;
/** How much of a tall page is compared, in pixels of the page. */
export const HIGHEST = 3000;
/** Colors are rounded to multiples of this, which halves the size of files. */
const SHADES = 8;
/** A pixel differs strongly if its red, green or blue differs by more than this, of 255. */
export const STRONG = 40;
/**
 * How much two pictures of one page may differ: their mean difference, of 255, and how many of 100 pixels differ strongly.
 * Another run on the same machine, with other IDs, differed by 0.6 and 0.3 at most; other hinting and another system font
 * made no difference. A broken layout differs by more than 2.3 in the mean, or strongly in more than 4 of 100.
 */
export const TOLERANCE = { mean: 2, strong: 2 };

/** The fonts that replace the machine's: weight, and the file of the package. */
const FACES = [
  ["Pictured", 400, "noto-sans/files/noto-sans-latin-400-normal.woff2"],
  ["Pictured", 700, "noto-sans/files/noto-sans-latin-700-normal.woff2"],
  ["Pictured Mono", 400, "noto-sans-mono/files/noto-sans-mono-latin-400-normal.woff2"],
  ["Pictured Mono", 700, "noto-sans-mono/files/noto-sans-mono-latin-700-normal.woff2"],
].map(([family, weight, file]) => {
  const path = createRequire(import.meta.url).resolve(`@fontsource/${file}`);
  return { family, weight, bytes: readFileSync(path).toString("base64") };
});
// Letter widths are the font's, whatever hinting a machine uses.
const STYLE =
  "body{font-family:Pictured,sans-serif!important;text-rendering:geometricPrecision!important}code,pre,.address{font-family:Pictured Mono,monospace!important}";

/** Adds rules to a page. The page's policy allows no style elements. */
export async function style(page, rules) {
  await page.evaluate((text) => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(text);
    document.adoptedStyleSheets.push(sheet);
  }, rules);
}

/** Makes a page use the fonts in this folder, so that it has the same width on machines with other fonts. */
export async function settleFonts(page) {
  await page.evaluate(async (faces) => {
    for (const { family, weight, bytes } of faces) {
      const data = Uint8Array.from(atob(bytes), (character) => character.charCodeAt(0));
      document.fonts.add(await new FontFace(family, data.buffer, { weight: String(weight) }).load());
    }
  }, FACES);
  await style(page, STYLE);
}

/** The small picture of a page: as wide as its contents, and without the blank space below them. */
export async function picture(page) {
  const { width, height } = await page.evaluate(() => ({
    width: document.documentElement.scrollWidth,
    height: Math.ceil(document.body.getBoundingClientRect().height),
  }));
  const clip = { x: 0, y: 0, width, height: Math.min(height, HIGHEST) };
  return shrunk(PNG.sync.read(await page.screenshot({ fullPage: true, clip, animations: "disabled" })));
}

/** Each square as its mean. The remainders at the right and at the bottom are squares, too. */
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

/**
 * The difference of two rows: the sum over all channels of all pixels, and how many pixels differ strongly.
 */
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
 * The distance of two small pictures, in the terms of `TOLERANCE`. A row that only one of them has counts as half of its
 * pixels differing strongly. Pictures of pages with different widths have nothing in common.
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

/** Whether two pictures show the same page, judging by their difference. */
export function alike({ mean, strong }) {
  return mean <= TOLERANCE.mean && strong <= TOLERANCE.strong;
}
