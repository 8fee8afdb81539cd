// The requests under way and the newest that have ended.
import { asAdmin, type Key, keyName, type Request } from "../admin.ts";
import { useData } from "../ui/data.ts";
import { bytes, counted, duration, time } from "../ui/format.ts";
import { Badge, Head, Problem, Table } from "../ui/parts.tsx";

interface Listed {
  under_way_count: number;
  under_way: Request[];
  recent: Request[];
}

/** Pause between two looks, in milliseconds. */
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
        Without what was said in them. This gateway keeps the newest 500 in memory, since an admin key was
        set.
      </Head>
      <Problem error={error} />
      {listed && (
        <>
          <h2>Under way</h2>
          <Table
            caption={counted(listed.under_way_count, "request")}
            columns={COLUMNS}
            rows={listed.under_way.length}
            empty="No request is under way."
          >
            {listed.under_way.map((request) => (
              <Row key={request.id} request={request} keys={keys?.keys} />
            ))}
          </Table>
          <h2>Recent</h2>
          <Table
            caption="The newest first"
            columns={COLUMNS}
            rows={listed.recent.length}
            empty="No request has ended yet."
          >
            {listed.recent.map((request) => (
              <Row key={request.id} request={request} keys={keys?.keys} />
            ))}
          </Table>
        </>
      )}
      {!listed && !error && <p class="soft">Loading …</p>}
    </>
  );
}

const COLUMNS = [
  ["Begun"],
  ["Operation"],
  ["Status"],
  ["Key"],
  ["Model"],
  ["Upstream"],
  ["First byte", "number"],
  ["Duration", "number"],
  ["Size", "number"],
  ["Request"],
] as const;

function Row({ request, keys }: { request: Request; keys: Key[] | undefined }) {
  return (
    <tr>
      <th scope="row">{time(request.begun)}</th>
      <td>
        <code>{request.operation}</code>
      </td>
      <td>
        <State request={request} />
      </td>
      <td class="short">{keyName(keys, request.key)}</td>
      <td>{request.model ?? ""}</td>
      <td>{request.upstream ?? ""}</td>
      <td class="number">{request.first_byte_ms === null ? "" : duration(request.first_byte_ms)}</td>
      <td class="number">{duration(request.duration_ms)}</td>
      <td class="number">{request.outcome === null ? "" : bytes(request.bytes)}</td>
      <td>
        <code>{request.id}</code>
      </td>
    </tr>
  );
}

function State({ request: { status, outcome } }: { request: Request }) {
  if (outcome === null) return <Badge kind="plain">{status === null ? "waiting" : "sending"}</Badge>;
  const kind = status === null || outcome !== "complete" ? "warn" : status < 400 ? "good" : "bad";
  return (
    <Badge kind={kind}>
      {status ?? ""} {outcome === "complete" ? "" : outcome}
    </Badge>
  );
}
