/** What callers give, as JSON. */

/** The JSON of what `place` takes. Errors: TypeError for what has no JSON form; for a BigInt, it says where that is. */
export function jsonOf(place: string, value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch (error) {
    // Once more, with the places of values: that is slower.
    JSON.stringify(value, refusesBigInts(place));
    throw error;
  }
}

function refusesBigInts(place: string): (this: unknown, name: string, member: unknown) => unknown {
  const places = new Map<unknown, string>();
  return function (name, member) {
    const holder = places.get(this);
    const own =
      holder === undefined ? place : Array.isArray(this) ? `${holder}[${name}]` : `${holder}.${name}`;
    if (typeof member === "bigint") {
      throw new TypeError(`${own} is a BigInt, which has no JSON form; give a number, or its digits as text`);
    }
    places.set(member, own);
    return member;
  };
}
