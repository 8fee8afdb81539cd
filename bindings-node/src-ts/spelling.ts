/** Guesses which name a misspelled one stands for. */

/** Longest name that is compared. */
const MAX_NAME_LENGTH = 64;

/**
 * The known name nearest to `name`: the same but for case and underscores, or with at most a third of its letters
 * wrong. `undefined` if there is none.
 */
export function nearest(name: string, known: readonly string[]): string | undefined {
  if (name.length > MAX_NAME_LENGTH) return undefined;
  const wanted = plain(name);
  let best: string | undefined;
  let least = Math.floor(wanted.length / 3) + 1;
  for (const candidate of known) {
    const wrong = distance(wanted, plain(candidate));
    if (wrong < least) [best, least] = [candidate, wrong];
  }
  return best;
}

/**
 * The known name that `name` misspells beyond doubt: the same but for case and underscores, or with one wrong letter in names
 * of six letters or more, two from ten. What a provider has of its own must pass: `top_k` is no `top_p`, and `min_tokens`
 * no `max_tokens`. `undefined` if there is none.
 */
export function misspelled(name: string, known: readonly string[]): string | undefined {
  if (name.length > MAX_NAME_LENGTH) return undefined;
  const wanted = plain(name);
  return known.find((candidate) => {
    const plainName = plain(candidate);
    const allowed = plainName.length < 6 ? 0 : plainName.length < 10 ? 1 : 2;
    return Math.abs(wanted.length - plainName.length) <= allowed && distance(wanted, plainName) <= allowed;
  });
}

/** `; did you mean NAME?`, or nothing. */
export function suggestion(name: string, known: readonly string[]): string {
  const closest = nearest(name, known);
  return closest === undefined ? "" : `; did you mean ${closest}?`;
}

function plain(name: string): string {
  return name.replaceAll("_", "").toLowerCase();
}

/** Letters to add, drop, replace or swap with their neighbor on the way from one word to the other. */
function distance(one: string, other: string): number {
  const rows = [Array.from({ length: other.length + 1 }, (_, column) => column)];
  const at = (row: number, column: number) => rows[row]?.[column] ?? 0;
  for (let row = 1; row <= one.length; row += 1) {
    const line = [row];
    rows.push(line);
    for (let column = 1; column <= other.length; column += 1) {
      const differs = one[row - 1] === other[column - 1] ? 0 : 1;
      let steps = Math.min(
        at(row - 1, column) + 1,
        at(row, column - 1) + 1,
        at(row - 1, column - 1) + differs,
      );
      const isSwapped = one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1];
      if (row > 1 && column > 1 && isSwapped) steps = Math.min(steps, at(row - 2, column - 2) + 1);
      line.push(steps);
    }
  }
  return at(one.length, other.length);
}
