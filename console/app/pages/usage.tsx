// Tokens and cost by day and key.
import { useRef, useState } from "preact/hooks";
import { asAdmin, type UsageRow } from "../admin.ts";
import { Bars, colours, Legend, MOST_NAMES, OTHERS, type Series } from "../ui/chart.tsx";
import { useData } from "../ui/data.ts";
import { counted, money, short, whole } from "../ui/format.ts";
import { Choice, Head, Id, Problem, Table } from "../ui/parts.tsx";

type Part = "key" | "model" | "upstream";

const DAY = 24 * 60 * 60 * 1000;
const PAUSE = 10_000;

export function Usage() {
  const [span, setSpan] = useState("14");
  const [part, setPart] = useState<Part>("key");
  const days = lastDays(Number(span));
  const { value, error } = useData(
    async (signal) => {
      const path = `usage?from=${days[0]}&to=${days.at(-1)}&by=day,${part}`;
      return { part, ...(await asAdmin<{ usage: UsageRow[] }>(path, { signal })) };
    },
    [span, part],
    PAUSE,
  );
  const rows = value?.usage ?? [];
  // Until the response for a new choice arrives, the previous one stays on the page.
  const shown = value?.part ?? part;
  const name = (row: UsageRow) => row.name ?? row[shown] ?? "other";
  // A name keeps its color while the page is open, even if another one overtakes it.
  const kept = useRef(new Map<string, number>());
  const groups = grouped(rows, name, kept.current);
  const drawn = (value: (row: UsageRow) => number): Series[] =>
    groups.map(({ name: title, colour, rows: own }) => ({
      name: title,
      colour,
      values: byDay(own, days, value),
    }));
  return (
    <>
      <Head title="Usage">
        Days are in UTC. Cost is computed from the configured prices and excludes unpriced requests.
      </Head>
      <div class="filters">
        <Choice
          label="Days"
          value={span}
          options={["7", "14", "30", "90"].map((count) => [count, `${count} days`])}
          onChange={setSpan}
        />
        <Choice
          label="Group by"
          value={part}
          options={["key", "model", "upstream"].map((each) => [each, each])}
          onChange={(chosen) => setPart(chosen as Part)}
        />
      </div>
      <Problem error={error} />
      {value && rows.length === 0 && <p class="empty">No usage in this period.</p>}
      {rows.length > 0 && (
        <>
          <Legend series={groups} />
          <div class="charts">
            <Bars
              label="Tokens by day"
              days={days}
              series={drawn((row) => row.input_tokens + row.output_tokens)}
              words={short}
              isCount
            />
            <Bars
              label="Cost by day"
              days={days}
              series={drawn((row) => row.cost)}
              words={money}
              isCount={false}
            />
            <Bars
              label="Requests by day"
              days={days}
              series={drawn((row) => row.requests)}
              words={short}
              isCount
            />
          </div>
          <Table
            caption={`By day and ${shown}, newest first`}
            columns={[
              ["Day"],
              [shown[0]?.toUpperCase() + shown.slice(1)],
              ["Requests", "number"],
              ["Estimated", "number"],
              ["Unpriced", "number"],
              ["Input tokens", "number"],
              ["Cached tokens", "number"],
              ["Output tokens", "number"],
              ["Reasoning tokens", "number"],
              ["Cost", "number"],
            ]}
            rows={[...rows].reverse().map((row) => ({
              key: `${row.day}-${row[shown]}`,
              cells: [
                <time key="day">{row.day}</time>,
                <Id key="name" plain of={name(row)} />,
                whole(row.requests),
                whole(row.estimated),
                whole(row.unpriced),
                whole(row.input_tokens),
                whole(row.cached_tokens),
                whole(row.output_tokens),
                whole(row.reasoning_tokens),
                row.unpriced === row.requests && row.requests > 0 ? "–" : money(row.cost),
              ],
            }))}
          />
        </>
      )}
      {!value && !error && <p class="soft">Loading…</p>}
    </>
  );
}

/** The last `count` days, including today, in UTC. */
function lastDays(count: number): string[] {
  const today = Date.now();
  return Array.from({ length: count }, (_, place) =>
    new Date(today - (count - 1 - place) * DAY).toISOString().slice(0, 10),
  );
}

interface Group {
  name: string;
  colour: number;
  rows: UsageRow[];
}

/** Groups rows by name: the names with the most tokens, then all others as one group. Every chart uses the same groups. */
function grouped(rows: UsageRow[], name: (row: UsageRow) => string, kept: Map<string, number>): Group[] {
  const all = new Map<string, UsageRow[]>();
  for (const row of rows) all.set(name(row), [...(all.get(name(row)) ?? []), row]);
  const tokens = (own: UsageRow[]) => own.reduce((sum, row) => sum + row.input_tokens + row.output_tokens, 0);
  const sorted = [...all].sort(([, one], [, other]) => tokens(other) - tokens(one));
  const shown = sorted.slice(0, MOST_NAMES);
  const rest = sorted.slice(MOST_NAMES);
  const chosen = colours(
    shown.map(([each]) => each),
    kept,
  );
  const groups = shown.map(([each, own]) => ({ name: each, colour: chosen.get(each) ?? OTHERS, rows: own }));
  if (rest.length === 0) return groups;
  return [
    ...groups,
    { name: counted(rest.length, "other"), colour: OTHERS, rows: rest.flatMap(([, own]) => own) },
  ];
}

function byDay(rows: UsageRow[], days: string[], value: (row: UsageRow) => number): number[] {
  const of = (day: string) => rows.filter((row) => row.day === day);
  return days.map((day) => of(day).reduce((sum, row) => sum + value(row), 0));
}
