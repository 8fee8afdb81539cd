// A chart of stacked bars. The table beside it says the same in words.

export interface Series {
  name: string;
  /** One for each of the days. */
  values: number[];
}

const WIDTH = 720;
const HEIGHT = 160;
/** As many colours as there are; the rest are summed up. */
export const MOST_SERIES = 6;

export function Bars(props: {
  label: string;
  days: string[];
  series: Series[];
  words: (value: number) => string;
}) {
  const { days, series } = props;
  const sums = days.map((_, day) => series.reduce((sum, one) => sum + (one.values[day] ?? 0), 0));
  const most = Math.max(...sums, 0);
  const step = WIDTH / Math.max(days.length, 1);
  return (
    <figure class="chart">
      <figcaption>
        {props.label} <span class="soft">highest {props.words(most)}</span>
      </figcaption>
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        role="img"
        aria-label={`${props.label}; the table below has the numbers`}
        preserveAspectRatio="none"
      >
        {days.map((day, place) => {
          let top = HEIGHT;
          return (
            <g key={day}>
              {series.map((one, index) => {
                const value = one.values[place] ?? 0;
                if (value === 0 || most === 0) return null;
                const height = (value / most) * (HEIGHT - 4);
                top -= height;
                return (
                  <rect
                    key={one.name}
                    class={`series${index}`}
                    x={place * step + step * 0.12}
                    y={top}
                    width={step * 0.76}
                    height={height}
                  >
                    <title>{`${day}, ${one.name}: ${props.words(value)}`}</title>
                  </rect>
                );
              })}
            </g>
          );
        })}
      </svg>
      <div class="axis soft">
        <span>{days[0]}</span>
        <span>{days.at(-1)}</span>
      </div>
      {series.length > 0 && (
        <ul class="legend">
          {series.map((one, index) => (
            <li key={one.name}>
              <svg viewBox="0 0 10 10" width="10" height="10" aria-hidden="true">
                <rect class={`series${index}`} width="10" height="10" rx="2" />
              </svg>
              {one.name}
            </li>
          ))}
        </ul>
      )}
    </figure>
  );
}
