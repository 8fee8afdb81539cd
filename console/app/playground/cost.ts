// The cost of an answer, at the configured price of its model.
import type { Price, TokenPrice } from "../session.ts";
import type { Answer } from "./run.ts";

type Used = Pick<Answer, "input" | "output" | "cached" | "written" | "reasoning">;

/** In the currency of the price. `null`: the usage is unknown. As the gateway computes it, but for its rounding. */
export function cost({ tokens, tiers }: Price, used: Used): number | null {
  const { input, output } = used;
  if (input === null || output === null) return null;
  // The highest tier that the prompt exceeds applies to the whole request.
  const exceeded = tiers.filter(({ above }) => input > above).sort((one, other) => other.above - one.above);
  const rates: TokenPrice = exceeded[0]?.tokens ?? tokens;
  const cached = Math.min(used.cached ?? 0, input);
  const written = Math.min(used.written ?? 0, input - cached);
  const reasoning = Math.min(used.reasoning ?? 0, output);
  const parts: [number, number][] = [
    [input - cached - written, rates.input],
    [cached, rates.cached_input ?? rates.input],
    [written, rates.cache_write ?? rates.input],
    [output - reasoning, rates.output],
    [reasoning, rates.reasoning ?? rates.output],
  ];
  return parts.reduce((sum, [count, rate]) => sum + count * rate, 0) / 1_000_000;
}
