// A chart of stacked bars, with a scale. The table next to it has the same numbers as text.
import { shortDay } from "./format.ts";

export interface Series {
  name: string;
  /** Index of its color; a name has the same color in every chart. */
  colour: number;
  /** One per day. */
  values: number[];
}

const WIDTH = 720;
const HEIGHT = 160;
/** Number of names with a color of their own. */
export const MOST_NAMES = 6;
/** The color of the sum of all others. */
export const OTHERS = MOST_NAMES;
/** Approximate number of scale lines above zero. */
const LINES = 4;

export function Bars(props: {
  label: string;
  days: string[];
  series: Series[];
  words: (value: number) => string;
  /** Whether the values are whole numbers. */
  isCount: boolean;
}) {
  const { days, series } = props;
  const sums = days.map((_, day) => series.reduce((sum, one) => sum + (one.values[day] ?? 0), 0));
  const marks = scale(Math.max(...sums, 0), props.isCount);
  const top = marks.at(-1) ?? 1;
  const step = WIDTH / Math.max(days.length, 1);
  return (
    <figure class="chart">
      <figcaption>{props.label}</figcaption>
      <div class="plot">
        <ol class="scale soft" aria-hidden="true">
          {[...marks].reverse().map((mark) => (
            <li key={mark}>{props.words(mark)}</li>
          ))}
        </ol>
        <svg
          viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
          role="img"
          aria-label={`${props.label}; the table below has the numbers`}
          preserveAspectRatio="none"
        >
          {marks.map((mark) => {
            const y = HEIGHT * (1 - mark / top);
            return (
              <line key={mark} x1="0" x2={WIDTH} y1={y} y2={y} class={mark === 0 ? "zero" : undefined} />
            );
          })}
          {days.map((day, place) => {
            let y = HEIGHT;
            return (
              <g key={day}>
                {series.map((one) => {
                  const value = one.values[place] ?? 0;
                  if (value === 0) return null;
                  const height = (value / top) * HEIGHT;
                  y -= height;
                  return (
                    <rect
                      key={one.name}
                      class={`series${one.colour}`}
                      x={place * step + step * 0.12}
                      y={y}
                      width={step * 0.76}
                      // A hairline gap between two parts, whose colors alone may be hard to tell apart.
                      height={height > 3 ? height - 1 : height}
                    >
                      <title>{`${day}, ${one.name}: ${props.words(value)}`}</title>
                    </rect>
                  );
                })}
              </g>
            );
          })}
        </svg>
        <div class="days soft">
          <span>{shortDay(days[0] ?? "")}</span>
          <span>{shortDay(days.at(-1) ?? "")}</span>
        </div>
      </div>
    </figure>
  );
}

/** The meaning of the charts' colors. */
export function Legend({ series }: { series: Pick<Series, "name" | "colour">[] }) {
  return (
    <ul class="legend" aria-label="Colors">
      {series.map(({ name, colour }) => (
        <li key={name}>
          <svg viewBox="0 0 10 10" width="10" height="10" aria-hidden="true">
            <rect class={`series${colour}`} width="10" height="10" rx="2" />
          </svg>
          {name}
        </li>
      ))}
    </ul>
  );
}

/** Evenly spaced round values, from zero to at least `most`. */
function scale(most: number, isCount: boolean): number[] {
  if (most <= 0) return [0, 1];
  const about = most / LINES;
  const magnitude = 10 ** Math.floor(Math.log10(about));
  const round = [1, 2, 2.5, 5, 10].map((factor) => factor * magnitude).find((step) => step >= about);
  const exact = round ?? 10 * magnitude;
  const step = isCount ? Math.ceil(exact) : exact;
  // Multiply instead of adding: in floating point, 0.1 + 0.2 isn't 0.3.
  return Array.from({ length: Math.ceil(most / step) + 1 }, (_, mark) => mark * step);
}

/** The colors of names as long as the page is open, whatever is shown, and in whatever order. */
const assigned = new Map<string, number>();

/** A color for each name: its previous one, otherwise its own, otherwise a free one. */
export function colours(names: string[]): Map<string, number> {
  const found = new Map<string, number>();
  const taken = new Set<number>();
  for (const name of names) {
    const before = assigned.get(name);
    if (before === undefined || taken.has(before)) continue;
    found.set(name, before);
    taken.add(before);
  }
  // In an order that doesn't change with the numbers, so that most names have the same color after a reload.
  for (const name of [...names].sort()) {
    if (found.has(name)) continue;
    const own = hash(name) % MOST_NAMES;
    const places = Array.from({ length: MOST_NAMES }, (_, place) => (own + place) % MOST_NAMES);
    const colour = places.find((each) => !taken.has(each)) ?? OTHERS;
    found.set(name, colour);
    assigned.set(name, colour);
    taken.add(colour);
  }
  return found;
}

/** A number that depends on the name alone (FNV-1a). */
function hash(name: string): number {
  let state = 0x811c9dc5;
  for (const unit of name) state = Math.imul(state ^ (unit.codePointAt(0) ?? 0), 0x01000193) >>> 0;
  return state;
}
