/** Headers of the core as `Headers`, which have one character per byte. */

/**
 * Values with other characters become their bytes in UTF-8, as `fetch` shows them: one header must not turn a response, or the
 * error of a call, into a `TypeError`.
 */
export function headersOf(pairs: readonly (readonly [string, string])[]): Headers {
  const headers = new Headers();
  for (const [name, value] of pairs) headers.append(name, isBytes(value) ? value : bytesOf(value));
  return headers;
}

/** The reverse: values that are bytes in UTF-8 become their text again. */
export function pairsOf(headers: Headers): [string, string][] {
  return [...headers].map(([name, value]) => [name, textOf(value)]);
}

function isBytes(value: string): boolean {
  for (let at = 0; at < value.length; at += 1) if (value.charCodeAt(at) > 0xff) return false;
  return true;
}

function bytesOf(text: string): string {
  return Buffer.from(text, "utf8").toString("latin1");
}

/** Only what `bytesOf` has made: text up to U+00FF stays as it is. */
function textOf(value: string): string {
  const text = Buffer.from(value, "latin1").toString("utf8");
  return !isBytes(text) && bytesOf(text) === value ? text : value;
}
