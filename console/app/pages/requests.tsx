// The requests in progress and the newest finished ones.
import { asAdmin, type Key, keyName, type Request } from "../admin.ts";
import { useData } from "../ui/data.ts";
import { bytes, counted, duration, time } from "../ui/format.ts";
import { Badge, Head, Id, Problem, type Row, Table } from "../ui/parts.tsx";

interface Listed {
  under_way_count: number;
  under_way: Request[];
  recent: Request[];
}

/** Pause between two polls, in milliseconds. */
const PAUSE = 2000;

export function Requests() {
  const { value, error } = useData(
    (signal) =>
      Promise.all([
        asAdmin<Listed>("requests", { signal }),
        asAdmin<{ keys: Key[] }>("keys?revoked=true", { signal }),
      ]),
    [],
    PAUSE,
  );
  const [listed, keys] = value ?? [null, null];
  return (
    <>
      <Head title="Requests">
        Prompts and answers aren't recorded. The gateway keeps the newest 500 requests in memory, starting
        when an admin key is set.
      </Head>
      <Problem error={error} />
      {listed && (
        <>
          <h2>In progress</h2>
          <Table
            caption={counted(listed.under_way_count, "request")}
            columns={COLUMNS}
            rows={listed.under_way.map((request) => row(request, keys?.keys))}
            empty="No requests in progress."
          />
          <h2>Recent</h2>
          <Table
            caption="Newest first"
            columns={COLUMNS}
            rows={listed.recent.map((request) => row(request, keys?.keys))}
            empty="No finished requests yet."
          />
        </>
      )}
      {!listed && !error && <p class="soft">Loading…</p>}
    </>
  );
}

const COLUMNS = [
  ["Started"],
  ["Operation"],
  ["Status"],
  ["Key"],
  ["Model"],
  ["Upstream"],
  ["First byte", "number"],
  ["Duration", "number"],
  ["Size", "number"],
] as const;

const row = (request: Request, keys: Key[] | undefined): Row => ({
  key: request.id,
  cells: [
    <time key="begun" dateTime={new Date(request.begun).toISOString()}>
      {time(request.begun)}
    </time>,
    <>
      <Id of={request.operation} />
      <div class="soft">
        <Id of={request.id} />
      </div>
    </>,
    <State key="state" request={request} />,
    <Id key="key" plain of={keyName(keys, request.key)} />,
    request.model && <Id plain of={request.model} />,
    request.upstream && <Id plain of={request.upstream} />,
    request.first_byte_ms !== null && duration(request.first_byte_ms),
    duration(request.duration_ms),
    request.outcome !== null && bytes(request.bytes),
  ],
});

function State({ request: { status, outcome } }: { request: Request }) {
  if (outcome === null) return <Badge kind="plain">{status === null ? "waiting" : "sending"}</Badge>;
  const kind = status === null || outcome !== "complete" ? "warn" : status < 400 ? "good" : "bad";
  return (
    <Badge kind={kind}>
      {status ?? ""} {outcome === "complete" ? "" : outcome}
    </Badge>
  );
}
