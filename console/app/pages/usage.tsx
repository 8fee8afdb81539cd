// Tokens, cost, errors and latency by day and key.
import { useState } from "preact/hooks";
import { asAdmin, type Key, keyName, type RequestLog, type UsageRow } from "../admin.ts";
import { currency } from "../session.ts";
import { Bars, colours, Legend, MOST_NAMES, OTHERS, type Series } from "../ui/chart.tsx";
import { useData } from "../ui/data.ts";
import { counted, duration, money, short, whole } from "../ui/format.ts";
import { Choice, Head, Id, Line, Problem, Stats, Table } from "../ui/parts.tsx";
import { csv, save } from "../ui/save.ts";
import { figures } from "./latest.ts";

type Part = "key" | "model" | "upstream";

const DAY = 24 * 60 * 60 * 1000;
const PAUSE = 10_000;
/** Maximum number of days in a report: each is a bar. */
const MAX_DAYS = 366;
/** The choice of days that the user types. */
const OWN = "own";

export function Usage() {
  const [span, setSpan] = useState("14");
  const [own, setOwn] = useState(() => ({ from: dayBefore(13), to: dayBefore(0) }));
  const [part, setPart] = useState<Part>("key");
  const days = span === OWN ? daysOf(own.from, own.to) : lastDays(Number(span));
  const [from, to] = [days[0], days.at(-1)];
  const { value, error } = useData(
    async (signal) => {
      if (from === undefined) return null;
      const [{ usage }, listed, { keys }] = await Promise.all([
        asAdmin<{ usage: UsageRow[] }>(`usage?from=${from}&to=${to}&by=day,${part}`, { signal }),
        asAdmin<RequestLog>("requests", { signal }),
        asAdmin<{ keys: Key[] }>("keys?revoked=true", { signal }),
      ]);
      return { part, usage, recent: listed.recent, keys };
    },
    [from, to, part],
    PAUSE,
  );
  const rows = (from !== undefined && value?.usage) || [];
  // Until the response for a new choice arrives, the previous one stays on the page.
  const shown = value?.part ?? part;
  // Failed requests may have no model and no upstream.
  const name = (row: UsageRow) => row.name ?? ((row[shown] ?? "other") || "none");
  const groups = grouped(
    rows.filter((row) => row.requests > 0),
    name,
  );
  const drawn = (value: (row: UsageRow) => number): Series[] =>
    groups.map(({ name: title, colour, rows: own }) => ({
      name: title,
      colour,
      values: byDay(own, days, value),
    }));
  const title = `${shown[0]?.toUpperCase()}${shown.slice(1)}`;
  const cost = currency.value === null ? "Cost" : `Cost (${currency.value})`;
  return (
    <>
      <Head
        title="Usage"
        actions={
          <button
            type="button"
            class="button"
            aria-disabled={rows.length === 0}
            onClick={() => rows.length > 0 && download(`usage-${from}-to-${to}-by-${shown}.csv`, rows)}
          >
            Download CSV
          </button>
        }
      >
        Days are in UTC. Cost is computed from the configured prices and excludes unpriced requests. Requests
        counts those that an upstream answered; Failed also counts those that the gateway rejected. Latency is
        that of complete answers.
      </Head>
      <div class="filters">
        <Choice
          label="Days"
          value={span}
          options={[
            ...["7", "14", "30", "90"].map((count) => [count, `${count} days`] as const),
            [OWN, "own dates"],
          ]}
          onChange={setSpan}
        />
        {span === OWN && (
          <>
            <Line label="From" type="date" value={own.from} onInput={(from) => setOwn({ ...own, from })} />
            <Line label="To" type="date" value={own.to} onInput={(to) => setOwn({ ...own, to })} />
          </>
        )}
        <Choice
          label="Group by"
          value={part}
          options={["key", "model", "upstream"].map((each) => [each, each])}
          onChange={(chosen) => setPart(chosen as Part)}
        />
      </div>
      {from === undefined && (
        <Problem error={new Error(`Choose a first and a last day, at most ${MAX_DAYS} days apart.`)} />
      )}
      <Problem error={error} />
      {value && from !== undefined && rows.length === 0 && <p class="empty">No usage in this period.</p>}
      {rows.length > 0 && (
        <>
          <Totals rows={rows} />
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
              label={`${cost.replace("Cost", "Cost by day")}`}
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
            caption={`Total by ${shown}`}
            columns={columns(title, cost)}
            rows={summed(rows, name).map((row) => ({
              key: name(row),
              cells: [<Id key="name" plain of={name(row)} />, ...numbers(row)],
            }))}
          />
          <Table
            caption={`By day and ${shown}, newest first`}
            columns={[["Day"], ...columns(title, cost)]}
            rows={[...rows].reverse().map((row) => ({
              key: `${row.day}-${row[shown]}`,
              cells: [
                <time key="day">{row.day}</time>,
                <Id key="name" plain of={name(row)} />,
                ...numbers(row),
              ],
            }))}
          />
        </>
      )}
      {value && value.recent.length > 0 && (
        <Latest part={shown} title={title} recent={value.recent} keys={value.keys} />
      )}
      {!value && !error && from !== undefined && <p class="soft">Loading…</p>}
    </>
  );
}

const columns = (title: string, cost: string) =>
  [
    [title],
    ["Requests", "number"],
    ["Failed", "number"],
    ["Mean latency", "number"],
    ["Unpriced", "number"],
    ["Input tokens", "number"],
    ["Cached tokens", "number"],
    ["Output tokens", "number"],
    ["Reasoning tokens", "number"],
    [cost, "number"],
  ] as const;

/** The cells of a row, without its names. */
const numbers = (row: UsageRow) => [
  whole(row.requests),
  failures(row),
  row.timed > 0 ? duration(row.latency_ms / row.timed) : "–",
  whole(row.unpriced),
  whole(row.input_tokens),
  whole(row.cached_tokens),
  whole(row.output_tokens),
  whole(row.reasoning_tokens),
  row.unpriced === row.requests && row.requests > 0 ? "–" : money(row.cost),
];

/** The number of failed requests, and their share of those that came to an end. */
function failures({ failed, timed }: UsageRow): string {
  return failed === 0 ? "0" : share(failed, failed + timed);
}

const share = (failed: number, all: number): string =>
  `${whole(failed)} (${Math.round((failed / all) * 100)} %)`;

/** The sums of all rows. */
function Totals({ rows }: { rows: UsageRow[] }) {
  const [total] = summed(rows, () => "all");
  if (!total) return null;
  return (
    <Stats
      facts={[
        ["Requests", whole(total.requests)],
        ["Failed requests", total.failed > 0 && failures(total)],
        ["Mean latency", total.timed > 0 && duration(total.latency_ms / total.timed)],
        ["Mean time to first byte", total.timed > 0 && duration(total.first_byte_ms / total.timed)],
        ["Input tokens", whole(total.input_tokens)],
        ["Output tokens", whole(total.output_tokens)],
        ["Cost", money(total.cost, currency.value)],
        ["Unpriced requests", total.unpriced > 0 && whole(total.unpriced)],
        ["Estimated requests", total.estimated > 0 && whole(total.estimated)],
        ["Incomplete answers", total.requests > total.complete && whole(total.requests - total.complete)],
      ]}
    />
  );
}

/** Errors and latency of the newest requests, whose times the gateway has one by one. */
function Latest(props: { part: Part; title: string; recent: RequestLog["recent"]; keys: Key[] }) {
  const { part, title, recent, keys } = props;
  const groups = new Map<string | null, RequestLog["recent"]>();
  for (const request of recent) groups.set(request[part], [...(groups.get(request[part]) ?? []), request]);
  const rows = [...groups].map(([value, requests]) => ({ value, ...figures(requests) }));
  rows.sort((one, other) => other.count - one.count);
  const long = (millis: number | null) => (millis === null ? "–" : duration(millis));
  return (
    <Table
      caption={`Errors and latency of the newest ${counted(recent.length, "request")}, by ${part}`}
      columns={[
        [title],
        ["Requests", "number"],
        ["Failed", "number"],
        ["First byte, median", "number"],
        ["Duration, median", "number"],
        ["Duration, 95 %", "number"],
      ]}
      rows={rows.map(({ value, count, failed, firstByte, took, slow }) => ({
        key: value ?? "",
        cells: [
          <Id key="name" plain of={part === "key" ? keyName(keys, value) : (value ?? "none")} />,
          whole(count),
          share(failed, count),
          long(firstByte),
          long(took),
          long(slow),
        ],
      }))}
    />
  );
}

/** The members of a row in a file: all numbers as they are. */
const FILE = [
  "day",
  "key",
  "name",
  "model",
  "upstream",
  "requests",
  "complete",
  "estimated",
  "unpriced",
  "input_tokens",
  "cached_tokens",
  "cache_write_tokens",
  "output_tokens",
  "reasoning_tokens",
  "cost",
  "failed",
  "timed",
  "first_byte_ms",
  "latency_ms",
] as const;

function download(name: string, rows: UsageRow[]): void {
  const head = [...FILE, "currency"];
  const lines = rows.map((row) => [...FILE.map((member) => row[member]), currency.value]);
  save(name, "text/csv", csv(head, lines));
}

/** The day this many days ago, in UTC. */
const dayBefore = (count: number): string => new Date(Date.now() - count * DAY).toISOString().slice(0, 10);

/** The last `count` days, including today, in UTC. */
const lastDays = (count: number): string[] =>
  Array.from({ length: count }, (_, place) => dayBefore(count - 1 - place));

/** The days from one to another; none if that isn't a period. */
function daysOf(from: string, to: string): string[] {
  const [first, last] = [Date.parse(from), Date.parse(to)];
  const count = Math.round((last - first) / DAY) + 1;
  // Also if one of them isn't a day.
  if (!(count >= 1 && count <= MAX_DAYS)) return [];
  return Array.from({ length: count }, (_, place) =>
    new Date(first + place * DAY).toISOString().slice(0, 10),
  );
}

/** The sums of rows with the same name, the largest cost first, then the most tokens. */
function summed(rows: UsageRow[], name: (row: UsageRow) => string): UsageRow[] {
  const sums = new Map<string, UsageRow>();
  for (const row of rows) {
    const before = sums.get(name(row));
    if (!before) {
      sums.set(name(row), { ...row });
      continue;
    }
    for (const member of SUMS) before[member] += row[member];
  }
  const tokens = (row: UsageRow) => row.input_tokens + row.output_tokens;
  return [...sums.values()].sort((one, other) => other.cost - one.cost || tokens(other) - tokens(one));
}

const SUMS = [
  "requests",
  "complete",
  "estimated",
  "unpriced",
  "input_tokens",
  "cached_tokens",
  "cache_write_tokens",
  "output_tokens",
  "reasoning_tokens",
  "cost",
  "failed",
  "timed",
  "first_byte_ms",
  "latency_ms",
] as const;

interface Group {
  name: string;
  colour: number;
  rows: UsageRow[];
}

/** Groups rows by name: the names with the most tokens, then all others as one group. Every chart uses the same groups. */
function grouped(rows: UsageRow[], name: (row: UsageRow) => string): Group[] {
  const all = new Map<string, UsageRow[]>();
  for (const row of rows) all.set(name(row), [...(all.get(name(row)) ?? []), row]);
  const tokens = (own: UsageRow[]) => own.reduce((sum, row) => sum + row.input_tokens + row.output_tokens, 0);
  const sorted = [...all].sort(([, one], [, other]) => tokens(other) - tokens(one));
  const shown = sorted.slice(0, MOST_NAMES);
  const rest = sorted.slice(MOST_NAMES);
  const chosen = colours(shown.map(([each]) => each));
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
