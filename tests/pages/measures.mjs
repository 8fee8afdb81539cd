/**
 * Measurements within a page. Each function runs in the browser and names the problems, so that a failing
 * test says what to look at.
 */

/** By how much the page is wider than its window. Scrollable regions don't count. */
export function overflow() {
  return document.documentElement.scrollWidth - window.innerWidth;
}

/**
 * Words broken across two lines: runs of letters and digits. Outside of names and addresses, only text that fits on a line
 * between two spaces counts: messages quote documents, which may contain no spaces at all.
 */
export function brokenWords() {
  const NAMES = ".address, thead, table.matrix, dl.checks dt, h3, summary";
  const BLOCKS = "td, th, dd, dt, p, li, h1, h2, h3, summary, caption";
  const boxes = (node, from, length) => {
    const range = document.createRange();
    range.setStart(node, from);
    range.setEnd(node, from + length);
    return [...range.getClientRects()];
  };
  const width = (lines) => lines.reduce((sum, line) => sum + line.width, 0);
  const broken = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (element.closest("pre, style, .hidden") || !element.checkVisibility()) continue;
    const room = element.closest(BLOCKS)?.clientWidth ?? document.body.clientWidth;
    for (const { 0: text, index } of node.data.matchAll(/\S+/gu)) {
      const isName = element.closest(NAMES) !== null;
      if (!isName && width(boxes(node, index, text.length)) > room) continue;
      for (const { 0: word, index: at } of text.matchAll(/[\p{L}\p{N}]+/gu)) {
        const lines = boxes(node, index + at, word.length);
        const tops = new Set(lines.map((line) => Math.round(line.top)));
        if (tops.size > 1 && width(lines) <= room) broken.push(word);
      }
    }
  }
  return broken;
}

/** Times whose number and unit are on different lines. */
export function partedTimes() {
  const parted = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (element.closest("pre, code, style, .hidden") || !element.checkVisibility()) continue;
    for (const { 0: time, index } of node.data.matchAll(/\d\s(?:ms|s|min)\b/gu)) {
      const range = document.createRange();
      range.setStart(node, index);
      range.setEnd(node, index + time.length);
      const tops = new Set([...range.getClientRects()].map((line) => Math.round(line.top)));
      if (tops.size > 1) parted.push(element.textContent);
    }
  }
  return parted;
}

/**
 * Links whose underline crosses the underscores of their text: the line begins above the foot of the glyph.
 */
export function hiddenUnderscores() {
  const canvas = document.createElement("canvas").getContext("2d");
  const hidden = [];
  for (const link of document.querySelectorAll("a")) {
    const walker = document.createTreeWalker(link, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      if (!node.data.includes("_")) continue;
      const font = getComputedStyle(node.parentElement);
      canvas.font = `${font.fontWeight} ${font.fontSize} ${font.fontFamily}`;
      const foot = canvas.measureText("_").actualBoundingBoxDescent;
      const line = getComputedStyle(link);
      const offset = Number.parseFloat(line.textUnderlineOffset);
      if (!(offset >= foot + 1) || line.textDecorationSkipInk !== "none") {
        hidden.push(
          `${link.textContent}: offset ${offset}, foot of _ ${foot}, ${line.textDecorationSkipInk}`,
        );
      }
    }
  }
  return hidden;
}

/** Visible texts with less contrast than WCAG's 4.5 to 1. */
export function faintTexts() {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const colour = (text) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = text;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([red, green, blue]) => {
    const part = (value) =>
      value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4;
    return 0.2126 * part(red) + 0.7152 * part(green) + 0.0722 * part(blue);
  };
  const behind = (element) => {
    for (let place = element; place; place = place.parentElement) {
      const found = colour(getComputedStyle(place).backgroundColor);
      if (found[3] === 255) return found;
    }
    return colour("Canvas");
  };
  const faint = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || element.closest(".hidden, style, title") || !element.checkVisibility()) continue;
    const [ink, paper] = [light(colour(getComputedStyle(element).color)), light(behind(element))];
    const contrast = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
    if (contrast < 4.5) faint.add(`${node.data.trim()}: ${contrast.toFixed(2)}`);
  }
  return [...faint];
}

/** The cells of a report: their results, and whether they are open. */
export function cells() {
  return [...document.querySelectorAll("details.cell")].map((cell) => ({
    result: cell.querySelector("h3 > span").textContent,
    open: cell.open,
    shown: cell.querySelector("article").checkVisibility({ contentVisibilityAuto: true }),
  }));
}
