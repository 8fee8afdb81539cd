// Compatibility reports: the page that `gatewright report html` generates, and comparisons of two reports.
import type { TargetedEvent } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { askJson } from "../api.ts";
import { callerKey } from "../session.ts";
import { Files } from "../ui/files.tsx";
import { Head, Problem } from "../ui/parts.tsx";

/** Maximum size of a report, in bytes. */
const LONGEST = 8 * 1024 * 1024;

interface Finding {
  line: number;
  column: number;
  pointer: string;
  message: string;
}

interface Verdict {
  violations: Finding[];
  more_violations: number;
}

interface Rendered {
  html?: string;
  report?: Verdict | null;
  before?: Verdict | null;
}

interface Opened {
  name: string;
  text: string;
}

/** The reports that are open. */
interface Pair {
  newer: Opened | null;
  older: Opened | null;
}

export function Reports() {
  const [{ newer: report, older: before }, setPair] = useState<Pair>({ newer: null, older: null });
  const [rendered, setRendered] = useState<Rendered | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  // A second file may be opened before the page shows the first, and its answer may come first.
  const latest = useRef<Pair>({ newer: null, older: null });

  const show = async (change: Partial<Pair>) => {
    const pair = { ...latest.current, ...change };
    latest.current = pair;
    setPair(pair);
    setRendered(null);
    setError(null);
    setBusy(pair.newer !== null);
    if (!pair.newer) return;
    const body = { report: pair.newer.text, ...(pair.older ? { before: pair.older.text } : {}) };
    try {
      const answer = await askJson<Rendered>(callerKey.value ?? "", "/console/report", { body });
      if (latest.current === pair) setRendered(answer);
    } catch (failed) {
      if (latest.current === pair) setError(failed);
    }
    if (latest.current === pair) setBusy(false);
  };
  /** Closes reports. The button goes away, so the focus moves to the button that opens another one. */
  const close = (event: TargetedEvent<HTMLButtonElement>, change: Partial<Pair>) => {
    event.currentTarget.closest("section")?.querySelector("button")?.focus();
    return show(change);
  };
  const open = async (files: File[], put: (opened: Opened) => Promise<void>) => {
    const [file] = files;
    if (file) await put({ name: file.name, text: await file.text() });
  };
  const refused = (why: string) => setError(new Error(why));
  const accept = { "application/json": [".json"] };
  return (
    <>
      <Head title="Reports">
        Open a report from <code>gatewright check</code>. The gateway renders it and doesn't store it.
      </Head>
      <div class="pair reports">
        <section class="card" aria-label="Report">
          <Files
            label="Open a report"
            hint="or drop it here"
            accept={accept}
            most={1}
            maxBytes={LONGEST}
            onFiles={(files) => open(files, (newer) => show({ newer }))}
            onRefused={refused}
          />
          {report && (
            <p>
              <code>{report.name}</code>{" "}
              <button
                type="button"
                class="button small"
                onClick={(event) => close(event, { newer: null, older: null })}
              >
                Close
              </button>
            </p>
          )}
        </section>
        <section class="card" aria-label="Older report">
          <Files
            label="Compare with an older report"
            hint="or drop it here"
            accept={accept}
            most={1}
            maxBytes={LONGEST}
            onFiles={(files) => open(files, (older) => show({ older }))}
            onRefused={refused}
          />
          {before && (
            <p>
              <code>{before.name}</code>{" "}
              <button type="button" class="button small" onClick={(event) => close(event, { older: null })}>
                Close
              </button>
              {!report && <span class="soft"> Now open the newer one.</span>}
            </p>
          )}
        </section>
      </div>
      <Problem error={error} />
      {busy && (
        <p class="soft" role="status">
          Rendering…
        </p>
      )}
      {rendered?.report && report && <Findings name={report.name} verdict={rendered.report} />}
      {rendered?.before && before && <Findings name={before.name} verdict={rendered.before} />}
      {rendered?.html !== undefined && <Page html={rendered.html} />}
    </>
  );
}

/** The page of a report. It is markup from the gateway, so it is only shown in a frame without scripts. */
function Page({ html }: { html: string }) {
  const url = useMemo(() => URL.createObjectURL(new Blob([html], { type: "text/html" })), [html]);
  useEffect(() => () => URL.revokeObjectURL(url), [url]);
  // With its own URL and this page's origin, links to its own anchors work; no script runs in it.
  return <iframe class="report" sandbox="allow-same-origin" title="Rendered report" src={url} />;
}

function Findings({ name, verdict }: { name: string; verdict: Verdict }) {
  return (
    <section class="problem" role="alert" aria-label={`Problems in ${name}`}>
      <p>
        <code>{name}</code> is not a valid report.
      </p>
      <ul>
        {verdict.violations.slice(0, 20).map((finding) => (
          <li key={`${finding.line}:${finding.column} ${finding.message}`}>
            <code>
              {finding.line}:{finding.column}
            </code>{" "}
            {finding.message}
          </li>
        ))}
      </ul>
      {verdict.violations.length + verdict.more_violations > 20 && (
        <p class="soft">…and {verdict.violations.length + verdict.more_violations - 20} more.</p>
      )}
    </section>
  );
}
