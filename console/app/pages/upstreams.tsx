// The upstreams as they are now, and what keeps requests from them.
import { asAdmin, type Upstream } from "../admin.ts";
import { useData } from "../ui/data.ts";
import { counted } from "../ui/format.ts";
import { Badge, Head, Problem, Table } from "../ui/parts.tsx";

const PAUSE = 3000;

/** The words for a breaker. */
const BREAKERS: Record<string, readonly ["good" | "warn" | "bad", string]> = {
  closed: ["good", "requests pass"],
  half_open: ["warn", "one request decides"],
  open: ["bad", "no request is sent"],
};

export function Upstreams() {
  const { value, error } = useData(
    (signal) => asAdmin<{ upstreams: Upstream[] }>("upstreams", { signal }),
    [],
    PAUSE,
  );
  return (
    <>
      <Head title="Upstreams">Who answers, how busy they are, and which are left out for a while.</Head>
      <Problem error={error} />
      {value?.upstreams.map((upstream) => (
        <section key={upstream.name} class="card" aria-label={upstream.name}>
          <div class="row">
            <h2>{upstream.name}</h2>
            <p class="soft">
              {upstream.kind}
              {upstream.region && ` · ${upstream.region}`} · {counted(upstream.keys, "key")} ·{" "}
              {counted(upstream.in_flight, "request")} in progress
            </p>
          </div>
          <Table
            caption={`Models of ${upstream.name}`}
            columns={[["Model"], ["There"], ["Breaker"], ["Keys that wait", "number"]]}
            rows={upstream.models.length}
            empty="No model goes there."
          >
            {upstream.models.map((model) => {
              const [kind, words] = BREAKERS[model.breaker] ?? (["warn", model.breaker] as const);
              return (
                <tr key={model.model}>
                  <th scope="row">
                    <code>{model.model}</code>
                  </th>
                  <td>
                    <code>{model.upstream_model}</code>
                  </td>
                  <td>
                    <Badge kind={kind}>{words}</Badge>
                  </td>
                  <td class="number">{model.keys_waiting}</td>
                </tr>
              );
            })}
          </Table>
        </section>
      ))}
      {!value && !error && <p class="soft">Loading …</p>}
    </>
  );
}
