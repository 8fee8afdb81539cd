// The upstreams as they are now, and what keeps requests from them.
import { asAdmin, type Upstream } from "../admin.ts";
import { useData } from "../ui/data.ts";
import { counted, whole } from "../ui/format.ts";
import { Badge, Head, Id, Problem, Table } from "../ui/parts.tsx";

const PAUSE = 3000;

/** What a state of a breaker means. */
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
            empty="No model goes there."
          />
        </section>
      ))}
      {!value && !error && <p class="soft">Loading …</p>}
    </>
  );
}
