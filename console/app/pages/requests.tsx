// The requests in progress and the newest finished ones.
import { useRef, useState } from "preact/hooks";
import {
  asAdmin,
  type BodyText,
  type Key,
  keyName,
  type Request,
  type RequestContent,
  type RequestLog,
} from "../admin.ts";
import { currency } from "../session.ts";
import { useData } from "../ui/data.ts";
import { Dialog } from "../ui/dialog.tsx";
import { bytes, counted, duration, fullMoment, money, time, whole } from "../ui/format.ts";
import { Badge, Choice, Copy, Head, Id, Line, Problem, type Row, Stats, Table } from "../ui/parts.tsx";
import { figures, isFailed, MAX_LISTED } from "./latest.ts";

/** Pause between two polls, in milliseconds. */
const PAUSE = 2000;

/** Which requests to show; an empty text shows all. */
interface Filter {
  text: string;
  state: string;
  model: string;
  key: string;
  upstream: string;
}

const ALL: Filter = { text: "", state: "", model: "", key: "", upstream: "" };

const STATES: Record<string, (request: Request) => boolean> = {
  complete: (request) => request.outcome === "complete" && !isFailed(request),
  failed: isFailed,
  aborted: (request) => request.outcome === "aborted" && !isFailed(request),
};

export function Requests() {
  const [filter, setFilter] = useState(ALL);
  const [chosen, setChosen] = useState<string | null>(null);
  const { value, error } = useData(
    (signal) =>
      Promise.all([
        asAdmin<RequestLog>("requests", { signal }),
        asAdmin<{ keys: Key[] }>("keys?revoked=true", { signal }),
      ]),
    [],
    PAUSE,
  );
  const [listed, { keys }] = value ?? [null, { keys: null }];
  const all = listed ? [...listed.under_way, ...listed.recent] : [];
  // A request that is no longer listed stays in its dialog.
  const last = useRef<Request | null>(null);
  last.current = all.find(({ id }) => id === chosen) ?? (chosen === null ? null : last.current);
  const show = (request: Request) => isShown(request, filter, keyName(keys, request.key));
  const rows = (requests: Request[]) =>
    requests.map((request) => row(request, keys, () => setChosen(request.id)));
  const recent = listed?.recent.filter(show) ?? [];
  const underWay = listed?.under_way.filter(show) ?? [];
  const isFiltered = Object.values(filter).some((each) => each !== "");
  return (
    <>
      <Head title="Requests">
        {listed && listed.content_requests > 0
          ? `Prompts and answers of the newest ${counted(listed.content_requests, "request")} are kept for a while, in memory. `
          : "Prompts and answers aren't recorded. "}
        The gateway keeps the newest {MAX_LISTED} requests in memory, starting when an admin key is set.
      </Head>
      <Problem error={error} />
      {listed && (
        <>
          <Filters all={all} keys={keys} filter={filter} onChange={setFilter} />
          <Summary requests={recent} />
          <h2>In progress</h2>
          <Table
            caption={counted(isFiltered ? underWay.length : listed.under_way_count, "request")}
            columns={COLUMNS}
            rows={rows(underWay)}
            empty={isFiltered ? "No requests in progress match." : "No requests in progress."}
          />
          <h2>Recent</h2>
          <Table
            caption={
              isFiltered ? `${recent.length} of ${listed.recent.length}, newest first` : "Newest first"
            }
            columns={COLUMNS}
            rows={rows(recent)}
            empty={isFiltered ? "No finished requests match." : "No finished requests yet."}
          />
        </>
      )}
      {!listed && !error && <p class="soft">Loading…</p>}
      <Dialog open={last.current !== null} title="Request" onClose={() => setChosen(null)}>
        {last.current && <Details request={last.current} keys={keys} onClose={() => setChosen(null)} />}
      </Dialog>
    </>
  );
}

function isShown(request: Request, { text, state, model, key, upstream }: Filter, name: string): boolean {
  const { id, operation, error } = request;
  const words = [id, operation, request.model, request.upstream, name, error, request.status].join(" ");
  return (
    words.toLowerCase().includes(text.trim().toLowerCase()) &&
    (state === "" || STATES[state]?.(request) === true) &&
    (model === "" || request.model === model) &&
    (key === "" || request.key === key) &&
    (upstream === "" || request.upstream === upstream)
  );
}

function Filters(props: {
  all: Request[];
  keys: Key[] | null;
  filter: Filter;
  onChange: (filter: Filter) => void;
}) {
  const { all, keys, filter } = props;
  const set = (member: keyof Filter) => (value: string) => props.onChange({ ...filter, [member]: value });
  const choice = (label: string, member: "model" | "key" | "upstream", name = (value: string) => value) => {
    const values = new Set([...all.flatMap((request) => request[member] ?? []), filter[member]]);
    values.delete("");
    const options = [...values].map((value) => [value, name(value)] as const);
    options.sort(([, one], [, other]) => one.localeCompare(other));
    return (
      <Choice
        label={label}
        value={filter[member]}
        options={[["", "all"], ...options]}
        onChange={set(member)}
      />
    );
  };
  return (
    <div class="filters">
      <Line label="Search" type="search" value={filter.text} onInput={set("text")} />
      <Choice
        label="Status"
        value={filter.state}
        options={["", ...Object.keys(STATES)].map((state) => [state, state || "all"])}
        onChange={set("state")}
      />
      {choice("Model", "model")}
      {choice("Key", "key", (id) => keyName(keys, id))}
      {choice("Upstream", "upstream")}
    </div>
  );
}

/** Errors and latency of the finished requests that are shown. */
function Summary({ requests }: { requests: Request[] }) {
  const { count, failed, firstByte, took, slow } = figures(requests);
  if (count === 0) return null;
  const costs = requests.flatMap(({ cost }) => cost ?? []);
  const long = (millis: number | null) => millis !== null && duration(millis);
  return (
    <Stats
      facts={[
        ["Finished", whole(count)],
        ["Failed", `${whole(failed)} (${Math.round((failed / count) * 100)} %)`],
        ["First byte, median", long(firstByte)],
        ["Duration, median", long(took)],
        ["Duration, 95 %", long(slow)],
        [
          "Cost",
          costs.length > 0 &&
            money(
              costs.reduce((sum, cost) => sum + cost, 0),
              currency.value,
            ),
        ],
      ]}
    />
  );
}

const COLUMNS = [
  ["Started"],
  ["Operation"],
  ["Status"],
  ["Key"],
  ["Model and upstream"],
  ["Duration", "number"],
  ["Tokens", "number"],
  ["Cost", "number"],
  ["Details"],
] as const;

const row = (request: Request, keys: Key[] | null, onChoose: () => void): Row => ({
  key: request.id,
  cells: [
    <time key="started" dateTime={new Date(request.started).toISOString()}>
      {time(request.started)}
    </time>,
    <Id key="operation" of={request.operation} />,
    <State key="state" request={request} />,
    <Id key="key" plain of={keyName(keys, request.key)} />,
    request.model && (
      <>
        <Id plain of={request.model} />
        {request.upstream && (
          <div class="soft">
            <Id plain of={request.upstream} />
          </div>
        )}
      </>
    ),
    duration(request.duration_ms),
    tokens(request),
    request.cost !== null && money(request.cost),
    <button key="details" type="button" class="button small" onClick={onChoose}>
      Details <span class="hidden">of {request.id}</span>
    </button>,
  ],
});

/** Input and output. Images and videos may have none. */
function tokens({ input_tokens, output_tokens }: Request): string | null {
  if (!input_tokens && !output_tokens) return null;
  return `${whole(input_tokens ?? 0)} → ${whole(output_tokens ?? 0)}`;
}

function State({ request: { status, outcome, error } }: { request: Request }) {
  if (outcome === null) return <Badge kind="plain">{status === null ? "waiting" : "sending"}</Badge>;
  const kind = status === null || outcome !== "complete" ? "warn" : status < 400 ? "good" : "bad";
  return (
    <>
      <Badge kind={kind}>
        {status ?? ""} {outcome === "complete" ? "" : outcome}
      </Badge>
      {error !== null && (
        <div class="soft">
          <Id plain of={error} />
        </div>
      )}
    </>
  );
}

/** Everything about a request. */
function Details(props: { request: Request; keys: Key[] | null; onClose: () => void }) {
  const { request } = props;
  const number = (tokens: number | null) => tokens !== null && whole(tokens);
  const estimate = request.estimated ? " (estimated)" : "";
  const facts: [string, string | false | null][] = [
    ["Request", request.id],
    ["Operation", request.operation],
    ["Started", fullMoment(request.started / 1000)],
    ["Status", request.status !== null && String(request.status)],
    ["Outcome", request.outcome ?? "in progress"],
    ["Error", request.error],
    ["Key", keyName(props.keys, request.key)],
    ["Model", request.model],
    ["Upstream", request.upstream],
    ["First byte", request.first_byte_ms !== null && duration(request.first_byte_ms)],
    ["Duration", duration(request.duration_ms)],
    ["Response size", request.outcome !== null && bytes(request.bytes)],
    ["Input tokens", number(request.input_tokens)],
    ["Cached tokens", number(request.cached_tokens)],
    ["Output tokens", request.output_tokens !== null && `${whole(request.output_tokens)}${estimate}`],
    ["Reasoning tokens", number(request.reasoning_tokens)],
    ["Cost", request.cost !== null && money(request.cost, currency.value)],
  ];
  return (
    <>
      <dl class="facts">
        {facts.map(
          ([name, fact]) =>
            fact && (
              <div key={name}>
                <dt>{name}</dt>
                <dd>{fact}</dd>
              </div>
            ),
        )}
      </dl>
      {request.content && <Content key={request.id} of={request} />}
      <div class="actions">
        <button type="button" class="button" onClick={props.onClose}>
          Close
        </button>
      </div>
    </>
  );
}

/** The bodies of a request and of its response. They are fetched again when the response has ended. */
function Content({ of: { id, outcome } }: { of: Request }) {
  const { value, error } = useData(
    (signal) => asAdmin<RequestContent>(`requests/${encodeURIComponent(id)}/content`, { signal }),
    [id, outcome],
  );
  return (
    <>
      <Problem error={error} />
      {value && <BodyView title="Request" body={value.request} />}
      {value && <BodyView title="Response" body={value.response} />}
    </>
  );
}

function BodyView({ title, body: { text, bytes: size, cut } }: { title: string; body: BodyText }) {
  return (
    <section class="body" aria-label={`${title} body`}>
      <div class="row">
        <h3>
          {title} body, {bytes(size)}
          {cut && `, of which the first ${bytes(text.length)} are shown`}
        </h3>
        <Copy text={text} />
      </div>
      <pre tabIndex={0} role="region" aria-label={`Text of the ${title.toLowerCase()} body`}>
        {indented(text)}
      </pre>
    </section>
  );
}

/** JSON with line breaks, or any other text as it is. */
function indented(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
