// Videos: a task that is polled until it ends.
import { useEffect, useRef, useState } from "preact/hooks";
import { askJson } from "../api.ts";
import { callerKey, models, type VideoLimits } from "../session.ts";
import { duration } from "../ui/format.ts";
import { Badge, Choice, Line, Problem, Submit } from "../ui/parts.tsx";
import { CodeView } from "./code-view.tsx";
import type { Prepared } from "./conversation.ts";
import { preferred } from "./preferred.ts";
import { NoModel, Prompt } from "./prompt.tsx";
import { address } from "./run.ts";

interface Task {
  id: string;
  status: string;
  model: string;
  output?: { url: string; duration: number; resolution: string; format: string };
  error?: { message?: string; code?: string };
}

/** Pause between two polls of a task, in milliseconds. */
const PAUSE = 1000;

export function Videos() {
  const known = models("video");
  const [model, setModel] = useState(
    known.find(({ id }) => id === preferred.value.video)?.id ?? known[0]?.id ?? "",
  );
  const [prompt, setPrompt] = useState("waves on a beach");
  const [seconds, setSeconds] = useState("");
  const [resolution, setResolution] = useState("");
  const [ratio, setRatio] = useState("");
  const [task, setTask] = useState<Task | null>(null);
  const [took, setTook] = useState(0);
  const [watching, setWatching] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const watch = useRef<AbortController | null>(null);
  useEffect(() => () => watch.current?.abort(), []);
  const limits = known.find((other) => other.id === model)?.limits as VideoLimits | null | undefined;
  const prepared: Prepared = {
    operation: "create_video",
    path: {},
    query: {},
    body: {
      model,
      prompt,
      ...(seconds ? { duration: Number(seconds) } : {}),
      ...(resolution ? { resolution } : {}),
      ...(ratio ? { aspect_ratio: ratio } : {}),
    },
  };
  const submit = async (event: Event) => {
    event.preventDefault();
    if (watching) return;
    const controller = new AbortController();
    watch.current = controller;
    const { signal } = controller;
    setError(null);
    setTask(null);
    setTook(0);
    setWatching(true);
    const key = callerKey.value ?? "";
    const started = performance.now();
    try {
      let seen = await askJson<Task>(key, address(prepared), { body: prepared.body, signal });
      setTask(seen);
      while (seen.status !== "completed" && seen.status !== "failed") {
        await new Promise((resolve) => setTimeout(resolve, PAUSE));
        const path = { task_id: seen.id };
        const look: Prepared = { operation: "retrieve_video", path, query: {}, body: {} };
        seen = await askJson<Task>(key, address(look), { signal });
        setTask(seen);
        setTook(performance.now() - started);
      }
    } catch (failed) {
      if (!signal.aborted) setError(failed);
    }
    if (watch.current === controller) setWatching(false);
  };
  const stop = {
    words: "Stop watching",
    act: () => {
      watch.current?.abort();
      setWatching(false);
    },
  };
  if (known.length === 0) return <NoModel kind="video" />;
  const either = (values: string[] | undefined, otherwise: string[]) =>
    ["", ...(values ?? otherwise)].map((value) => [value, value || "default"] as const);
  return (
    <>
      <div class="playground">
        <section class="card result" aria-label="Video" aria-busy={watching}>
          {!task && !watching && !error && <p class="empty">Your video appears here when it's ready.</p>}
          {watching && <progress aria-label="Generating the video" />}
          {task && (
            <p role="status">
              <Status status={task.status} /> <code>{task.id}</code>
              {took > 0 && <span class="soft"> after {duration(took)}</span>}
            </p>
          )}
          {task?.status === "failed" && (
            <Problem error={new Error(task.error?.message ?? "The task failed.")} reveal />
          )}
          <Problem error={error} reveal />
          {task?.output && <Finished output={task.output} />}
        </section>
        <form class="card settings" onSubmit={submit}>
          <h2>Request</h2>
          <Choice
            label="Model"
            value={model}
            options={known.map(({ id }) => [id, id])}
            onChange={(value) => {
              setModel(value);
              setResolution("");
              setRatio("");
            }}
          />
          <Prompt value={prompt} onInput={setPrompt} />
          <Line
            label="Duration in seconds"
            type="number"
            min={limits?.min_duration_s ?? 3}
            max={limits?.max_duration_s ?? 15}
            placeholder="5"
            value={seconds}
            onInput={setSeconds}
          />
          <div class="pair">
            <Choice
              label="Resolution"
              value={resolution}
              options={either(limits?.resolutions, ["720p", "1080p"])}
              onChange={setResolution}
            />
            <Choice
              label="Aspect ratio"
              value={ratio}
              options={either(limits?.aspect_ratios, ["16:9", "9:16", "1:1"])}
              onChange={setRatio}
            />
          </div>
          <div class="actions">
            <Submit words="Generate" off={prompt.trim() === ""} stop={watching ? stop : null} />
          </div>
        </form>
      </div>
      <CodeView prepared={prepared} />
    </>
  );
}

function Status({ status }: { status: string }) {
  const kind = status === "completed" ? "good" : status === "failed" ? "bad" : "plain";
  return <Badge kind={kind}>{status}</Badge>;
}

/** The page shows only files that its own gateway serves. */
function Finished({ output }: { output: NonNullable<Task["output"]> }) {
  const url = new URL(output.url, location.href);
  const facts = `${output.resolution}, ${output.duration} s, ${output.format}`;
  if (!/^https?:$/.test(url.protocol)) return <p>The file's URL isn't a web address.</p>;
  if (url.origin !== location.origin) {
    return (
      <p>
        The file is at{" "}
        <a href={url.href} rel="noreferrer noopener" target="_blank">
          {url.host}
        </a>{" "}
        ({facts}).
      </p>
    );
  }
  return (
    <figure>
      {/* biome-ignore lint/a11y/useMediaCaption: a video that was just generated has no captions */}
      <video src={url.href} aria-label="The video" controls playsInline />
      <figcaption>
        {facts} · <a href={url.href}>Open the file</a>
      </figcaption>
    </figure>
  );
}
