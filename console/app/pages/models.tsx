// The models that the key may use, and the limits of requests to them.
import { useState } from "preact/hooks";
import { preferred } from "../playground/preferred.ts";
import { href } from "../router.ts";
import {
  about,
  currency,
  type EmbeddingLimits,
  type ImageLimits,
  type Kind,
  type Model,
  refresh,
  type TextLimits,
  type VideoLimits,
} from "../session.ts";
import { money, whole } from "../ui/format.ts";
import { Badge, Choice, Head, Id, Line, Problem, Table } from "../ui/parts.tsx";

export function Models() {
  const [word, setWord] = useState("");
  const [kind, setKind] = useState("");
  const [error, setError] = useState<unknown>(null);
  const all = about.value?.models ?? [];
  const shown = all.filter(
    (model) =>
      (kind === "" || model.kind === kind) &&
      [model.id, model.family, ...model.aliases].some((name) =>
        name.toLowerCase().includes(word.toLowerCase()),
      ),
  );
  const look = () => refresh().then(() => setError(null), setError);
  return (
    <>
      <Head
        title="Models"
        actions={
          <button type="button" class="button" onClick={look}>
            Refresh
          </button>
        }
      >
        The models your key can use.
      </Head>
      <Problem error={error} />
      <div class="filters">
        <Line label="Search" type="search" value={word} onInput={setWord} />
        <Choice
          label="Kind"
          value={kind}
          options={[
            ["", "all"],
            ["text", "text"],
            ["embedding", "embedding"],
            ["rerank", "rerank"],
            ["moderation", "moderation"],
            ["speech", "speech"],
            ["transcription", "transcription"],
            ["image", "image"],
            ["video", "video"],
          ]}
          onChange={setKind}
        />
      </div>
      <Table
        caption={`${shown.length} of ${all.length} models`}
        columns={[
          ["Model"],
          ["Kind"],
          ["Family"],
          ["Protocols", "prose"],
          ["Limits", "prose"],
          [currency.value === null ? "Price" : `Price (${currency.value})`, "prose"],
          ["Playground"],
        ]}
        rows={shown.map((model) => ({
          key: model.id,
          cells: [
            <>
              <Id of={model.id} />
              {model.aliases.length > 0 && <div class="soft">also {model.aliases.join(", ")}</div>}
            </>,
            <>
              {model.kind}
              {model.simulated && (
                <>
                  {" "}
                  <Badge kind="plain">simulated</Badge>
                </>
              )}
            </>,
            model.family,
            model.protocols.join(", "),
            limits(model),
            price(model),
            !PLAYABLE.includes(model.kind) ? null : (
              <a
                key="try"
                href={href(tryAt(model))}
                onClick={() => {
                  preferred.value = { ...preferred.value, [model.kind]: model.id };
                }}
              >
                Try <span class="hidden">{model.id}</span>
              </a>
            ),
          ],
        }))}
        empty="No models match."
      />
    </>
  );
}

/** What the playground shows. It has no vectors, rankings and verdicts. */
const PLAYABLE: readonly Kind[] = ["text", "image", "video"];

/** The part of the playground for a model. */
const tryAt = ({ kind }: Model): string => (kind === "text" ? "playground" : `playground/${kind}s`);

function limits(model: Model): string {
  if (!model.limits) return "per the specification";
  if (model.kind === "embedding") {
    return `up to ${whole((model.limits as EmbeddingLimits).dimensions)} dimensions`;
  }
  if (model.kind === "image") {
    const { sizes, max_resolution, max_n, max_prompt_characters } = model.limits as ImageLimits;
    return [
      sizes ? sizes.join(", ") : `up to ${max_resolution}`,
      `up to ${max_n} per request`,
      max_prompt_characters ? `prompt up to ${whole(max_prompt_characters)} characters` : "",
    ]
      .filter(Boolean)
      .join("; ");
  }
  if (model.kind === "video") {
    const { min_duration_s, max_duration_s, resolutions, aspect_ratios } = model.limits as VideoLimits;
    const seconds = max_duration_s ? `${min_duration_s ?? 3} to ${max_duration_s} s` : "";
    return [seconds, resolutions.join(", "), aspect_ratios.join(", ")].filter(Boolean).join("; ");
  }
  const { context_tokens, max_output_tokens } = model.limits as TextLimits;
  const known = [
    context_tokens ? `${whole(context_tokens)} tokens of context` : "",
    max_output_tokens ? `up to ${whole(max_output_tokens)} output tokens` : "",
  ].filter(Boolean);
  return known.join("; ") || "set by the provider";
}

/** What a model costs. Empty: there is no price, or it depends on the upstream. */
function price({ price, simulated }: Model): string {
  if (!price) return simulated ? "free" : "";
  const { tokens, tiers, image, video_second, audio_second, speech_characters } = price;
  const above = tiers.map((tier) => tier.above);
  const parts = [
    tokens.input || tokens.output
      ? `${money(tokens.input)} input, ${money(tokens.output)} output per million tokens`
      : "",
    above.length > 0 ? `more for prompts above ${whole(Math.min(...above))} tokens` : "",
    image !== null ? `${money(image)} per image` : "",
    video_second !== null ? `${money(video_second)} per second` : "",
    audio_second !== null ? `${money(audio_second)} per second` : "",
    speech_characters !== null ? `${money(speech_characters)} per million characters` : "",
  ].filter(Boolean);
  return parts.join("; ") || "free";
}
