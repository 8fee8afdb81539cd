// The current state of the upstreams, and why any of them get no requests.
import { useState } from "preact/hooks";
import { asAdmin, type RequestLog, type Upstream, type UpstreamTest } from "../admin.ts";
import { useData } from "../ui/data.ts";
import { counted, duration, whole } from "../ui/format.ts";
import { Badge, Head, Id, Problem, Table } from "../ui/parts.tsx";
import { type Figures, figures } from "./latest.ts";

const PAUSE = 3000;

/** The meaning of each breaker state. */
const BREAKERS: Record<string, readonly ["good" | "warn" | "bad", string]> = {
  closed: ["good", "requests go through"],
  half_open: ["warn", "one trial request"],
  open: ["bad", "no requests are sent"],
};

export function Upstreams() {
  const { value, error } = useData(
    (signal) =>
      Promise.all([
        asAdmin<{ upstreams: Upstream[] }>("upstreams", { signal }),
        asAdmin<RequestLog>("requests", { signal }),
      ]),
    [],
    PAUSE,
  );
  const [listed, requests] = value ?? [null, null];
  const latest = (name: string) =>
    figures(requests?.recent.filter(({ upstream }) => upstream === name) ?? []);
  return (
    <>
      <Head title="Upstreams">
        How busy and how fast each upstream is, and which ones are temporarily skipped. A test requests the
        first page of the upstream's model list.
      </Head>
      <Problem error={error} />
      {listed?.upstreams.map((upstream) => (
        <section key={upstream.name} class="card" aria-label={upstream.name}>
          <div class="row">
            <div>
              <h2>{upstream.name}</h2>
              <p class="soft">{upstream.address ? <code>{upstream.address}</code> : "in the gateway"}</p>
            </div>
            <p class="soft">
              {upstream.kind}
              {upstream.region && ` · ${upstream.region}`} · {counted(upstream.keys, "key")} ·{" "}
              {counted(upstream.in_flight, "request")} in progress
            </p>
          </div>
          <Latency figures={latest(upstream.name)} />
          {upstream.address && <Test name={upstream.name} />}
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

/** Its part of the newest requests. */
function Latency({ figures: { count, failed, firstByte, took } }: { figures: Figures }) {
  if (count === 0) return null;
  const parts = [
    `${counted(count, "request")} lately`,
    `${whole(failed)} failed`,
    firstByte === null ? "" : `first byte ${duration(firstByte)}`,
    took === null ? "" : `duration ${duration(took)} (medians)`,
  ];
  return <p>{parts.filter(Boolean).join(" · ")}</p>;
}

/** Tests an upstream, and shows what was found. */
function Test({ name }: { name: string }) {
  const [busy, setBusy] = useState(false);
  const [found, setFound] = useState<UpstreamTest | null>(null);
  const [error, setError] = useState<unknown>(null);
  const test = async () => {
    if (busy) return;
    setBusy(true);
    setFound(null);
    setError(null);
    try {
      const path = `upstreams/${encodeURIComponent(name)}/test`;
      setFound(await asAdmin<UpstreamTest>(path, { method: "POST" }));
    } catch (failed) {
      setError(failed);
    }
    setBusy(false);
  };
  return (
    <>
      <div class="actions">
        <button type="button" class="button small" aria-disabled={busy} onClick={test}>
          Test <span class="hidden">{name}</span>
        </button>
        <span role="status" class="found">
          {busy && "Testing…"}
          {found && <Found test={found} />}
        </span>
      </div>
      <Problem error={error} reveal />
    </>
  );
}

function Found({ test: { status, duration_ms, models, problem } }: { test: UpstreamTest }) {
  if (status === "untested") return <>Not tested: {problem}.</>;
  const after = duration_ms === null ? "" : ` after ${duration(duration_ms)}`;
  if (status === "ok") {
    return (
      <>
        <Badge kind="good">ok</Badge> {counted(models ?? 0, "model")}
        {after}
      </>
    );
  }
  return (
    <>
      <Badge kind="bad">failed</Badge> {problem}
      {after}
    </>
  );
}
