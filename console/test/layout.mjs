/** Layout measurements. Each function runs in the browser and names what is wrong, so that a failing test says where to look. */

/** Words (runs of letters and digits), ids, names and times that are split across two lines. */
export function brokenWords() {
  const lines = (node, from, length) => {
    const range = document.createRange();
    range.setStart(node, from);
    range.setEnd(node, from + length);
    return new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size;
  };
  const broken = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    // Conversations may contain one very long word, and code is shown verbatim.
    if (element.closest("pre, textarea, .hidden, .turn, .problem, .secret, .facts")) continue;
    if (!element.checkVisibility()) continue;
    const isWhole = element.closest(".id, time, .badge, .button, thead th") !== null;
    for (const { 0: word, index } of node.data.matchAll(isWhole ? /\S+/g : /[\p{L}\p{N}]+/gu)) {
      if (lines(node, index, word.length) > 1) broken.push(`${word} in ${node.data.trim()}`);
    }
    if (element.closest(".id, time") && lines(node, 0, node.data.length) > 1) broken.push(node.data);
  }
  return broken;
}

/** Controls cut off at a side of the window or of a surrounding frame, so that reaching them takes sideways scrolling. */
export function outOfView() {
  const cut = [];
  for (const element of document.querySelectorAll("main :is(a, button, input, select, textarea, summary)")) {
    if (element.closest(".hidden, .skip") || !element.checkVisibility()) continue;
    const box = element.getBoundingClientRect();
    if (box.width <= 1) continue;
    const frames = [{ left: 0, right: innerWidth }];
    for (let outer = element.parentElement; outer; outer = outer.parentElement) {
      if (getComputedStyle(outer).overflowX !== "visible") frames.push(outer.getBoundingClientRect());
    }
    if (frames.some(({ left, right }) => box.left < left - 1 || box.right > right + 1)) {
      cut.push(`${element.textContent || element.id} ends at ${Math.round(box.right)}`);
    }
  }
  return cut;
}

/** Tables that scroll sideways. */
export function wideTables() {
  return [...document.querySelectorAll(".wide")]
    .filter((frame) => frame.scrollWidth > frame.clientWidth)
    .map((frame) => `${frame.querySelector("caption").textContent}: ${frame.scrollWidth} px`);
}

/** By how much the page is wider than its window. */
export function overflow() {
  return document.documentElement.scrollWidth - innerWidth;
}
