// API keys for clients: create, change, rotate and revoke them.

import operations from "virtual:operations";
import { useState } from "preact/hooks";
import { asAdmin, type Issued, type Key, type Limits, type UsageRow } from "../admin.ts";
import { allModels, currency } from "../session.ts";
import { useData } from "../ui/data.ts";
import { Dialog } from "../ui/dialog.tsx";
import { counted, moment, money } from "../ui/format.ts";
import { Badge, Copy, Field, Head, Id, Line, Problem, Submit, Table, When } from "../ui/parts.tsx";
import { Picker } from "../ui/picker.tsx";

type Doing =
  | { what: "create" }
  | { what: "change" | "rotate" | "revoke"; key: Key }
  | { what: "show"; issued: Issued; isLeaving?: boolean };

export function Keys() {
  const [revoked, setRevoked] = useState(false);
  const [doing, setDoing] = useState<Doing | null>(null);
  const { value, error, again } = useData(
    async (signal) => {
      // Like the limits per month, in UTC.
      const today = new Date().toISOString().slice(0, 10);
      const [{ keys }, { usage }] = await Promise.all([
        asAdmin<{ keys: Key[] }>(`keys?revoked=${revoked}`, { signal }),
        asAdmin<{ usage: UsageRow[] }>(`usage?from=${today.slice(0, 7)}-01&to=${today}&by=key`, { signal }),
      ]);
      return { keys, usage: new Map(usage.map((row) => [row.key, row])) };
    },
    [revoked],
  );
  const done = (next: Doing | null) => {
    setDoing(next);
    again();
  };
  const keys = value?.keys ?? [];
  return (
    <>
      <Head
        title="Keys"
        actions={
          <button type="button" class="button primary" onClick={() => setDoing({ what: "create" })}>
            Create a key
          </button>
        }
      >
        The gateway stores only digests of keys. A secret is shown once, when it's created.
      </Head>
      <label class="check">
        <input
          type="checkbox"
          checked={revoked}
          onChange={(event) => setRevoked(event.currentTarget.checked)}
        />
        Show revoked keys
      </label>
      <Problem error={error} />
      {!value && !error && <p class="soft">Loading…</p>}
      {value && (
        <Table
          caption="Newest first"
          columns={[
            ["Name"],
            ["Status", "prose"],
            ["Scope", "prose"],
            ["Limits", "prose"],
            ["This month"],
            ["Actions"],
          ]}
          rows={keys.map((key) => ({
            key: key.id,
            cells: [
              <>
                <Id plain of={key.name} />
                <div class="soft">
                  <Id of={key.id} />
                </div>
              </>,
              <>
                <Status of={key} />
                <div class="soft">
                  created <When at={key.created} />
                </div>
              </>,
              scopes(key),
              limits(key.limits),
              <Used key="used" row={value.usage.get(key.id)} />,
              key.revoked === null && (
                <div class="actions">
                  <button
                    type="button"
                    class="button small"
                    onClick={() => setDoing({ what: "change", key })}
                  >
                    Edit <span class="hidden">{key.name}</span>
                  </button>
                  <button
                    type="button"
                    class="button small"
                    onClick={() => setDoing({ what: "rotate", key })}
                  >
                    Rotate <span class="hidden">{key.name}</span>
                  </button>
                  <button
                    type="button"
                    class="button small danger"
                    onClick={() => setDoing({ what: "revoke", key })}
                  >
                    Revoke <span class="hidden">{key.name}</span>
                  </button>
                </div>
              ),
            ],
          }))}
          empty="No keys yet. The configured key isn't listed."
        />
      )}
      <Dialog open={doing?.what === "create"} title="Create a key" onClose={() => setDoing(null)}>
        <Create onDone={(issued) => done({ what: "show", issued })} onCancel={() => setDoing(null)} />
      </Dialog>
      <Dialog
        open={doing?.what === "change"}
        title={doing?.what === "change" ? `Edit ${doing.key.name}` : ""}
        onClose={() => setDoing(null)}
      >
        {doing?.what === "change" && (
          <Change of={doing.key} onDone={() => done(null)} onCancel={() => setDoing(null)} />
        )}
      </Dialog>
      <Dialog
        open={doing?.what === "rotate"}
        title={doing?.what === "rotate" ? `Rotate ${doing.key.name}` : ""}
        onClose={() => setDoing(null)}
      >
        {doing?.what === "rotate" && (
          <Rotate
            of={doing.key}
            onDone={(issued) => done({ what: "show", issued })}
            onCancel={() => setDoing(null)}
          />
        )}
      </Dialog>
      <Dialog
        open={doing?.what === "revoke"}
        title={doing?.what === "revoke" ? `Revoke ${doing.key.name}?` : ""}
        onClose={() => setDoing(null)}
      >
        {doing?.what === "revoke" && (
          <Revoke of={doing.key} onDone={() => done(null)} onCancel={() => setDoing(null)} />
        )}
      </Dialog>
      <Dialog
        open={doing?.what === "show"}
        title="New secret"
        onLeave={() => doing?.what === "show" && setDoing({ ...doing, isLeaving: true })}
        onClose={() => setDoing(null)}
      >
        {doing?.what === "show" && (
          <>
            <p>
              This is the secret for <strong>{doing.issued.key.name}</strong>. It won't be shown again.
            </p>
            <p class="secret">
              <code>{doing.issued.secret}</code>
            </p>
            {doing.isLeaving && (
              <p role="alert" class="problem">
                Have you saved the secret? After this dialog is closed, it is lost, and the key must be
                rotated.
              </p>
            )}
            <div class="actions">
              <Copy text={doing.issued.secret} label="Copy the secret" />
              <button type="button" class="button primary" onClick={() => setDoing(null)}>
                I've saved it
              </button>
            </div>
          </>
        )}
      </Dialog>
    </>
  );
}

function Status({ of: key }: { of: Key }) {
  if (key.revoked !== null) return <Badge kind="bad">revoked</Badge>;
  if (key.expires === null) return <Badge kind="good">active</Badge>;
  if (key.expires * 1000 <= Date.now()) return <Badge kind="bad">expired</Badge>;
  return (
    <>
      <Badge kind="good">active</Badge>
      <div class="soft">
        until <When at={key.expires} />
      </div>
    </>
  );
}

function scopes({ scopes: { models, operations, show_upstream } }: Key): string {
  const parts = [
    models.length > 0 ? models.join(", ") : "all models",
    operations.length > 0 ? operations.join(", ") : "all operations",
    ...(show_upstream ? ["sees the upstream"] : []),
  ];
  return parts.join("; ");
}

const LIMITS: readonly (readonly [keyof Limits, string])[] = [
  ["requests_per_minute", "Requests per minute"],
  ["tokens_per_minute", "Tokens per minute"],
  ["concurrent_requests", "Concurrent requests"],
  ["tokens_per_day", "Tokens per day"],
  ["tokens_per_month", "Tokens per month"],
  ["cost_per_day", "Cost per day"],
  ["cost_per_month", "Cost per month"],
  ["file_bytes", "File storage in bytes"],
];

function limits(all: Limits): string {
  const set = LIMITS.filter(([name]) => (all[name] ?? null) !== null);
  return set.map(([name, words]) => `${words.toLowerCase()}: ${all[name]}`).join("; ") || "none";
}

/** The tokens of a key, and their cost unless no model that it called has a price. */
function Used({ row }: { row: UsageRow | undefined }) {
  if (!row?.requests) return <>not used</>;
  return (
    <>
      {counted(row.input_tokens + row.output_tokens, "token")}
      {row.unpriced < row.requests && <div class="soft">{money(row.cost, currency.value)}</div>}
    </>
  );
}

/** The state of a dialog's form while it is open. */
function useForm(act: () => Promise<void>) {
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      await act();
    } catch (failed) {
      setError(failed);
      setBusy(false);
    }
  };
  return { error, busy, submit };
}

const list = (text: string): string[] => text.split(/[\s,]+/).filter((part) => part !== "");

function Create(props: { onDone: (issued: Issued) => void; onCancel: () => void }) {
  const save = async (members: Members) => props.onDone(await asAdmin<Issued>("keys", { body: members }));
  return <KeyForm words="Create" save={save} onCancel={props.onCancel} />;
}

function Change(props: { of: Key; onDone: () => void; onCancel: () => void }) {
  const save = async (members: Members) => {
    await asAdmin(`keys/${encodeURIComponent(props.of.id)}`, { method: "PATCH", body: members });
    props.onDone();
  };
  return <KeyForm of={props.of} words="Save" save={save} onCancel={props.onCancel} />;
}

/** The members of a request that creates or changes a key. Scopes and limits are sent as a whole. */
interface Members {
  name: string;
  scopes: Key["scopes"];
  limits: Limits;
  expires: number | null;
}

/** The form of a new key, or of a change of one. */
function KeyForm(props: {
  of?: Key;
  words: string;
  save: (members: Members) => Promise<void>;
  onCancel: () => void;
}) {
  const { of: key } = props;
  const listed = allModels.value.map(({ id }) => id);
  const allowed = key?.scopes.models ?? [];
  const [name, setName] = useState(key?.name ?? "");
  const [models, setModels] = useState(allowed.filter((model) => listed.includes(model)));
  const [patterns, setPatterns] = useState(allowed.filter((model) => !listed.includes(model)).join(", "));
  const [chosenOperations, setOperations] = useState<string[]>(key?.scopes.operations ?? []);
  const [upstream, setUpstream] = useState(key?.scopes.show_upstream ?? false);
  const [days, setDays] = useState("");
  const [lasting, setLasting] = useState(false);
  const [most, setMost] = useState<Partial<Record<keyof Limits, string>>>(() =>
    Object.fromEntries(LIMITS.map(([limit]) => [limit, `${key?.limits[limit] ?? ""}`])),
  );
  const { error, busy, submit } = useForm(async () => {
    const set = LIMITS.flatMap(([limit]) => (most[limit] ? [[limit, Number(most[limit])] as const] : []));
    const expires = days ? Math.floor(Date.now() / 1000) + Math.round(Number(days) * 86_400) : null;
    await props.save({
      name,
      scopes: {
        models: [...new Set([...models, ...list(patterns)])],
        operations: chosenOperations,
        show_upstream: upstream,
      },
      limits: Object.fromEntries(set),
      // 0 removes the expiry of a key, and null leaves it.
      expires: lasting ? 0 : expires,
    });
  });
  return (
    <form onSubmit={submit}>
      <Line label="Name" required value={name} onInput={setName} autocomplete="off" />
      <Picker
        label="Models"
        options={listed}
        chosen={models}
        onChange={setModels}
        more={list(patterns).length}
      >
        <Line
          label="Other ids and patterns"
          value={patterns}
          onInput={setPatterns}
          hint="Separated by spaces or commas. family-* matches every id with that prefix."
        />
        <Unmatched patterns={list(patterns)} />
      </Picker>
      <Picker
        label="Operations"
        options={Object.keys(operations)}
        chosen={chosenOperations}
        onChange={setOperations}
      />
      <label class="check">
        <input
          type="checkbox"
          checked={upstream}
          onChange={(event) => setUpstream(event.currentTarget.checked)}
        />
        Report the upstream in x-gatewright-upstream
      </label>
      <Line
        label="Expires after (days)"
        type="number"
        min={1}
        value={days}
        onInput={setDays}
        placeholder={key?.expires ? moment(key.expires) : "never"}
        disabled={lasting}
      />
      {key?.expires && (
        <label class="check">
          <input
            type="checkbox"
            checked={lasting}
            onChange={(event) => setLasting(event.currentTarget.checked)}
          />
          Never expires
        </label>
      )}
      <details>
        <summary>Limits</summary>
        <div class="grid">
          {LIMITS.map(([limit, words]) => (
            <Line
              key={limit}
              label={words}
              type="number"
              min={0}
              {...(limit.startsWith("cost") ? { step: "any" } : {})}
              placeholder="none"
              value={most[limit] ?? ""}
              onInput={(value) => setMost({ ...most, [limit]: value })}
            />
          ))}
        </div>
      </details>
      <Problem error={error} reveal />
      <Buttons off={busy} words={props.words} onCancel={props.onCancel} />
    </form>
  );
}

/** Says which ids and patterns match no model that the gateway has now. */
function Unmatched({ patterns }: { patterns: string[] }) {
  const names = allModels.value.flatMap(({ id, aliases }) => [id, ...aliases]);
  const unmatched = patterns.filter((pattern) =>
    pattern.endsWith("*")
      ? !names.some((name) => name.startsWith(pattern.slice(0, -1)))
      : !names.includes(pattern),
  );
  return (
    <p class="hint warning" role="status">
      {unmatched.length > 0 && `This gateway has no model for ${unmatched.join(", ")}.`}
    </p>
  );
}

function Rotate(props: { of: Key; onDone: (issued: Issued) => void; onCancel: () => void }) {
  const [hours, setHours] = useState("1");
  const path = `keys/${encodeURIComponent(props.of.id)}/rotate`;
  const { error, busy, submit } = useForm(async () => {
    const body = { overlap_s: Math.round(Number(hours) * 3600) };
    props.onDone(await asAdmin<Issued>(path, { body }));
  });
  return (
    <form onSubmit={submit}>
      <Line
        label="Hours the old secret stays valid"
        type="number"
        min={0}
        step="any"
        value={hours}
        onInput={setHours}
        hint="With 0, the old secret stops working immediately."
      />
      <Problem error={error} reveal />
      <Buttons off={busy} words="Rotate" onCancel={props.onCancel} />
    </form>
  );
}

function Revoke(props: { of: Key; onDone: () => void; onCancel: () => void }) {
  const [typed, setTyped] = useState("");
  const { error, busy, submit } = useForm(async () => {
    await asAdmin(`keys/${encodeURIComponent(props.of.id)}`, { method: "DELETE" });
    props.onDone();
  });
  return (
    <form onSubmit={submit}>
      <p>The key stops working immediately. You can't undo this. Requests in progress finish as usual.</p>
      <Field label={`Type ${props.of.name} to revoke it`}>
        {(id) => (
          <input
            id={id}
            autocomplete="off"
            value={typed}
            onInput={(event) => setTyped(event.currentTarget.value)}
          />
        )}
      </Field>
      <Problem error={error} reveal />
      <Buttons off={busy || typed !== props.of.name} words="Revoke" danger onCancel={props.onCancel} />
    </form>
  );
}

function Buttons(props: { off: boolean; words: string; danger?: boolean; onCancel: () => void }) {
  return (
    <div class="actions">
      <button type="button" class="button" onClick={props.onCancel}>
        Cancel
      </button>
      <Submit words={props.words} off={props.off} danger={props.danger ?? false} />
    </div>
  );
}
