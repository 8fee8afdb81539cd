// The stored conversations, and the export of the one shown.
import { whole } from "../ui/format.ts";
import { When } from "../ui/parts.tsx";
import { save } from "../ui/save.ts";
import { withTexts } from "./attachments.ts";
import type { Turn } from "./conversation.ts";
import * as history from "./history.ts";
import * as state from "./state.ts";

export function Conversations() {
  const isEmpty = state.isEmpty.value;
  const others = history.conversations.value.filter(({ id }) => id !== history.current.value);
  return (
    <section class="card settings" aria-labelledby="conversations">
      <h2 id="conversations">Conversations</h2>
      <div class="actions">
        <button
          type="button"
          class="button small"
          aria-disabled={isEmpty}
          onClick={() => isEmpty || state.begin()}
        >
          New
        </button>
        {(["JSON", "Markdown"] as const).map((format) => (
          <button
            key={format}
            type="button"
            class="button small"
            aria-disabled={isEmpty}
            onClick={() => isEmpty || exportAs(format)}
          >
            Export {format}
          </button>
        ))}
      </div>
      {history.isTooLong.value && (
        <p class="hint" role="status">
          This conversation is too long to be stored in the browser. It ends with the page: export it.
        </p>
      )}
      {others.length > 0 && (
        <details>
          <summary>Earlier ({whole(others.length)})</summary>
          <ul class="earlier">
            {others.map(({ id, title, saved }) => (
              <li key={id}>
                <button type="button" class="link" onClick={() => state.open(id, saved)}>
                  {title}
                </button>
                <div class="row soft">
                  <When at={saved.saved / 1000} />
                  <button type="button" class="button small" onClick={() => history.remove(id)}>
                    Delete <span class="hidden">{title}</span>
                  </button>
                </div>
              </li>
            ))}
          </ul>
        </details>
      )}
      <p class="hint">Stored in this browser, without keys, until you sign out.</p>
    </section>
  );
}

function exportAs(format: "JSON" | "Markdown"): void {
  const shown = state.conversation();
  const day = new Date().toISOString().slice(0, 10);
  if (format === "JSON") {
    save(`conversation-${day}.json`, "application/json", `${JSON.stringify(shown, null, 2)}\n`);
    return;
  }
  const texts = shown.panes.map(({ model, turns }) => `# ${model}\n\n${turns.map(asMarkdown).join("")}`);
  save(`conversation-${day}.md`, "text/markdown", texts.join("\n"));
}

function asMarkdown(shown: Turn): string {
  const turn = withTexts(shown);
  if (turn.results.length > 0) {
    return `## Results\n\n${turn.results.map(({ name, output }) => fenced(`${name}: ${output}`)).join("")}`;
  }
  const name = turn.role === "user" ? "You" : "Model";
  const files = turn.files.map((file) => `*${file.name}*\n\n`).join("");
  const thoughts = turn.thoughts.map(({ text }) => text).join("\n\n");
  const reasoning = thoughts ? `${thoughts.replace(/^/gm, "> ")}\n\n` : "";
  const calls = turn.calls.map((call) => fenced(`${call.name}(${call.arguments})`)).join("");
  return `## ${name}\n\n${files}${reasoning}${turn.text ? `${turn.text.trimEnd()}\n\n` : ""}${calls}`;
}

/** A code block whose fence is longer than any in the text. */
function fenced(text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}\n${text}\n${fence}\n\n`;
}
