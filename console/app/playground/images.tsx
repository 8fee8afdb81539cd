// Images: a prompt and the generated images.
import { useEffect, useRef, useState } from "preact/hooks";
import { askJson } from "../api.ts";
import { callerKey, type ImageLimits, models } from "../session.ts";
import { duration } from "../ui/format.ts";
import { Choice, Line, Problem, Submit } from "../ui/parts.tsx";
import { CodeView } from "./code-view.tsx";
import type { Prepared } from "./conversation.ts";
import { preferred } from "./preferred.ts";
import { NoModel, Prompt } from "./prompt.tsx";
import { address } from "./run.ts";

interface Image {
  url?: string;
  b64_json?: string;
  revised_prompt?: string;
}

export function Images() {
  const known = models("image");
  const [model, setModel] = useState(
    known.find(({ id }) => id === preferred.value.image)?.id ?? known[0]?.id ?? "",
  );
  const [prompt, setPrompt] = useState("a lighthouse at dusk");
  const [size, setSize] = useState("");
  const [number, setNumber] = useState("1");
  const [quality, setQuality] = useState("");
  const [style, setStyle] = useState("");
  const [running, setRunning] = useState<AbortController | null>(null);
  const [made, setMade] = useState<{ images: Image[]; took: number; prompt: string } | null>(null);
  const [error, setError] = useState<unknown>(null);
  const aborting = useRef<AbortController | null>(null);
  useEffect(() => () => aborting.current?.abort(), []);
  const limits = known.find((other) => other.id === model)?.limits as ImageLimits | null | undefined;
  const prepared: Prepared = {
    operation: "create_image",
    path: {},
    query: {},
    body: {
      model,
      prompt,
      ...(size ? { size } : {}),
      ...(number !== "1" && number !== "" ? { n: Number(number) } : {}),
      ...(quality ? { quality } : {}),
      ...(style ? { style } : {}),
      // The page loads nothing from other origins.
      response_format: "b64_json",
    },
  };
  const draw = async (event: Event) => {
    event.preventDefault();
    if (running) return;
    const controller = new AbortController();
    aborting.current = controller;
    setRunning(controller);
    setError(null);
    setMade(null);
    const started = performance.now();
    try {
      const { body } = prepared;
      const answer = await askJson<{ data: Image[] }>(callerKey.value ?? "", address(prepared), {
        body,
        signal: controller.signal,
      });
      setMade({ images: answer.data, took: performance.now() - started, prompt });
    } catch (failed) {
      if (!controller.signal.aborted) setError(failed);
    }
    setRunning(null);
  };
  if (known.length === 0) return <NoModel kind="image" />;
  const sizes = limits?.sizes ?? ["256x256", "512x512", "1024x1024"];
  return (
    <>
      <div class="playground">
        <section class="card result" aria-label="Images" aria-busy={running !== null}>
          {running && (
            <p class="soft" role="status">
              Generating…
            </p>
          )}
          <Problem error={error} reveal />
          {!running && !made && !error && <p class="empty">Your images appear here.</p>}
          {made && (
            <>
              <p class="soft" role="status">
                Generated in {duration(made.took)}.
              </p>
              <div class="gallery">
                {made.images.map((image, place) => (
                  <figure key={image.b64_json?.slice(0, 64) ?? place}>
                    {image.b64_json ? (
                      <Inline
                        base64={image.b64_json}
                        alt={image.revised_prompt ?? made.prompt}
                        name={`image-${place + 1}`}
                      />
                    ) : (
                      <Elsewhere url={image.url ?? ""} />
                    )}
                    {image.revised_prompt && <figcaption>{image.revised_prompt}</figcaption>}
                  </figure>
                ))}
              </div>
            </>
          )}
        </section>
        <form class="card settings" onSubmit={draw}>
          <h2>Request</h2>
          <Choice
            label="Model"
            value={model}
            options={known.map(({ id }) => [id, id])}
            onChange={(value) => {
              setModel(value);
              setSize("");
              setQuality("");
              setStyle("");
            }}
          />
          <Prompt value={prompt} onInput={setPrompt} />
          <div class="pair">
            <Choice
              label="Size"
              value={size}
              options={[["", "default"], ...sizes.map((value) => [value, value] as const)]}
              onChange={setSize}
            />
            <Line
              label="Number of images"
              type="number"
              min={1}
              max={limits?.max_n ?? 10}
              value={number}
              onInput={setNumber}
            />
          </div>
          {limits?.quality && (
            <Choice
              label="Quality"
              value={quality}
              options={["", "standard", "hd"].map((value) => [value, value || "default"])}
              onChange={setQuality}
            />
          )}
          {limits?.style && (
            <Choice
              label="Style"
              value={style}
              options={["", "vivid", "natural"].map((value) => [value, value || "default"])}
              onChange={setStyle}
            />
          )}
          <div class="actions">
            <Submit
              words="Generate"
              off={prompt.trim() === ""}
              stop={running && { words: "Stop", act: () => running.abort() }}
            />
          </div>
        </form>
      </div>
      <CodeView prepared={prepared} />
    </>
  );
}

/** An image, and a link that saves it under a name. */
function Inline(props: { base64: string; alt: string; name: string }) {
  const type = pictureType(props.base64);
  const url = `data:${type};base64,${props.base64}`;
  return (
    <>
      <img src={url} alt={props.alt} />
      <a href={url} download={`${props.name}.${type.slice("image/".length)}`}>
        Download {props.name}
      </a>
    </>
  );
}

/** The media type of an image, from its first bytes in base64. */
function pictureType(base64: string): string {
  if (base64.startsWith("/9j/")) return "image/jpeg";
  if (base64.startsWith("UklGR")) return "image/webp";
  return base64.startsWith("R0lGOD") ? "image/gif" : "image/png";
}

/** A provider may send any text as a URL. Only web URLs become links. */
function Elsewhere({ url }: { url: string }) {
  if (!/^https?:/i.test(url)) return <p>The image's URL isn't a web address.</p>;
  return (
    <a href={url} rel="noreferrer noopener" target="_blank">
      Open the image (external link)
    </a>
  );
}
