// Tokens and money by day and key.
import { useState } from "preact/hooks";
import { asAdmin, type UsageRow } from "../admin.ts";
import { Bars, MOST_SERIES, type Series } from "../ui/chart.tsx";
import { useData } from "../ui/data.ts";
import { money, short, whole } from "../ui/format.ts";
import { Choice, Head, Problem, Table } from "../ui/parts.tsx";

type Part = "key" | "model" | "upstream";

const DAY = 24 * 60 * 60 * 1000;
const PAUSE = 10_000;

export function Usage() {
  const [span, setSpan] = useState("14");
  const [part, setPart] = useState<Part>("key");
  const days = lastDays(Number(span));
  const { value, error } = useData(
    (signal) =>
      asAdmin<{ usage: UsageRow[] }>(`usage?from=${days[0]}&to=${days.at(-1)}&by=day,${part}`, { signal }),
    [span, part],
    PAUSE,
  );
  const rows = value?.usage ?? [];
  const name = (row: UsageRow) => row.name ?? row[part] ?? "other";
  return (
    <>
      <Head title="Usage">Days are those of UTC. Money follows from the prices in the configuration.</Head>
      <div class="filters">
        <Choice
          label="Days"
          value={span}
          options={["7", "14", "30", "90"].map((count) => [count, `${count} days`])}
          onChange={setSpan}
        />
        <Choice
          label="By"
          value={part}
          options={["key", "model", "upstream"].map((each) => [each, each])}
          onChange={(chosen) => setPart(chosen as Part)}
        />
      </div>
      <Problem error={error} />
      {value && rows.length === 0 && <p class="empty">Nothing was used in these days.</p>}
      {rows.length > 0 && (
        <>
          <div class="charts">
            <Bars
              label="Tokens by day"
              days={days}
              series={series(rows, days, name, (row) => row.input_tokens + row.output_tokens)}
              words={short}
            />
            <Bars
              label="Money by day"
              days={days}
              series={series(rows, days, name, (row) => row.cost)}
              words={money}
            />
            <Bars
              label="Requests by day"
              days={days}
              series={series(rows, days, name, (row) => row.requests)}
              words={whole}
            />
          </div>
          <Table
            caption={`By day and ${part}, the newest first`}
            columns={[
              ["Day"],
              [part[0]?.toUpperCase() + part.slice(1)],
              ["Requests", "number"],
              ["Estimated", "number"],
              ["Input", "number"],
              ["Cached", "number"],
              ["Output", "number"],
              ["Reasoning", "number"],
              ["Money", "number"],
            ]}
            rows={rows.length}
          >
            {[...rows].reverse().map((row) => (
              <tr key={`${row.day}-${row[part]}`}>
                <th scope="row">{row.day}</th>
                <td>{name(row)}</td>
                <td class="number">{whole(row.requests)}</td>
                <td class="number">{whole(row.estimated)}</td>
                <td class="number">{whole(row.input_tokens)}</td>
                <td class="number">{whole(row.cached_tokens)}</td>
                <td class="number">{whole(row.output_tokens)}</td>
                <td class="number">{whole(row.reasoning_tokens)}</td>
                <td class="number">{money(row.cost)}</td>
              </tr>
            ))}
          </Table>
        </>
      )}
      {!value && !error && <p class="soft">Loading …</p>}
    </>
  );
}

/** So many days until today, in UTC. */
function lastDays(count: number): string[] {
  const today = Date.now();
  return Array.from({ length: count }, (_, place) =>
    new Date(today - (count - 1 - place) * DAY).toISOString().slice(0, 10),
  );
}

/** The largest few, and the rest as one. */
function series(
  rows: UsageRow[],
  days: string[],
  name: (row: UsageRow) => string,
  value: (row: UsageRow) => number,
): Series[] {
  const all = new Map<string, number[]>();
  for (const row of rows) {
    const day = days.indexOf(row.day ?? "");
    if (day < 0) continue;
    const values = all.get(name(row)) ?? days.map(() => 0);
    values[day] = (values[day] ?? 0) + value(row);
    all.set(name(row), values);
  }
  const sum = (values: number[]) => values.reduce((before, each) => before + each, 0);
  const sorted = [...all]
    .map(([each, values]) => ({ name: each, values }))
    .filter(({ values }) => sum(values) > 0)
    .sort((one, other) => sum(other.values) - sum(one.values));
  if (sorted.length <= MOST_SERIES) return sorted;
  const rest = sorted.slice(MOST_SERIES - 1);
  const together = days.map((_, day) => rest.reduce((before, each) => before + (each.values[day] ?? 0), 0));
  return [...sorted.slice(0, MOST_SERIES - 1), { name: `${rest.length} others`, values: together }];
}
