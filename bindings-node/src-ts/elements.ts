/** The elements of a JSON array as they are written: numbers keep all their digits. `array`: valid JSON. */
export function elements(array: string): string[] {
  const found: string[] = [];
  let depth = 0;
  let start = 1;
  for (let at = 0; at < array.length; at += 1) {
    switch (array[at]) {
      case '"':
        at = endOfString(array, at);
        break;
      case "[":
      case "{":
        depth += 1;
        break;
      case "]":
      case "}":
        depth -= 1;
        if (depth === 0 && array.slice(start, at).trim() !== "") found.push(array.slice(start, at));
        break;
      case ",":
        if (depth === 1) {
          found.push(array.slice(start, at));
          start = at + 1;
        }
        break;
      default:
    }
  }
  return found;
}

/** The place of the quotation mark that ends the string which begins at `start`. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; ; at += 1) {
    at = text.indexOf('"', at);
    let slashes = 0;
    while (text[at - 1 - slashes] === "\\") slashes += 1;
    if (at < 0 || slashes % 2 === 0) return at < 0 ? text.length : at;
  }
}
