// Storage that lasts until the tab is closed, and storage that outlives it, where keys never go.

/** Reads a stored text. Storage may be disabled. */
export function remembered(name: string): string | null {
  try {
    return sessionStorage.getItem(name);
  } catch {
    return null;
  }
}

/** Stores a text, or removes it. */
export function remember(name: string, text: string | null): void {
  try {
    if (text === null) sessionStorage.removeItem(name);
    else sessionStorage.setItem(name, text);
  } catch {
    // Without storage, it lasts only as long as the page is open.
  }
}

/** Lists the stored texts that outlive the tab and whose name begins with `prefix`, by the rest of their names. */
export function stored(prefix: string): Map<string, string> {
  const found = new Map<string, string>();
  try {
    for (const [name, text] of Object.entries({ ...localStorage })) {
      if (name.startsWith(prefix)) found.set(name.slice(prefix.length), text);
    }
  } catch {
    // Storage is disabled.
  }
  return found;
}

/** Stores a text that outlives the tab, or removes it. Returns whether it is stored: storage may be disabled or full. */
export function keep(name: string, text: string | null): boolean {
  try {
    if (text === null) localStorage.removeItem(name);
    else localStorage.setItem(name, text);
    return text !== null;
  } catch {
    return false;
  }
}
