// The current state of the upstreams, and why any of them get no requests.
import { asAdmin, type Upstream } from "../admin.ts";
import { useData } from "../ui/data.ts";
import { counted, whole } from "../ui/format.ts";
import { Badge, Head, Id, Problem, Table } from "../ui/parts.tsx";

const PAUSE = 3000;

/** The meaning of each breaker state. */
const BREAKERS: Record<string, readonly ["good" | "warn" | "bad", string]> = {
  closed: ["good", "requests go through"],
  half_open: ["warn", "one trial request"],
  open: ["bad", "no requests are sent"],
};

export function Upstreams() {
  const { value, error } = useData(
    (signal) => asAdmin<{ upstreams: Upstream[] }>("upstreams", { signal }),
    [],
    PAUSE,
  );
  return (
    <>
      <Head title="Upstreams">How busy each upstream is, and which ones are temporarily skipped.</Head>
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
            columns={[
              ["Model"],
              ["Upstream model"],
              ["Circuit breaker", "prose"],
              ["Keys in cooldown", "number"],
            ]}
            rows={upstream.models.map((model) => {
              const [kind, words] = BREAKERS[model.breaker] ?? (["warn", ""] as const);
              return {
                key: model.model,
                cells: [
                  <Id key="model" of={model.model} />,
                  <Id key="upstream" of={model.upstream_model} />,
                  <>
                    <Badge kind={kind}>{model.breaker.replace("_", "-")}</Badge>{" "}
                    <span class="soft">{words}</span>
                  </>,
                  whole(model.keys_waiting),
                ],
              };
            })}
            empty="No models use this upstream."
          />
        </section>
      ))}
      {!value && !error && <p class="soft">Loading…</p>}
    </>
  );
}
