// What the tab remembers until it is closed. Nothing outlives it: keys never reach storage that does.

/** Reads what was remembered. Storage may be turned off. */
export function remembered(name: string): string | null {
  try {
    return sessionStorage.getItem(name);
  } catch {
    return null;
  }
}

/** Remembers a text, or forgets it. */
export function remember(name: string, text: string | null): void {
  try {
    if (text === null) sessionStorage.removeItem(name);
    else sessionStorage.setItem(name, text);
  } catch {
    // Then it is remembered as long as the page is open.
  }
}
