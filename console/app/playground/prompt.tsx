// The prompt for an image or a video, and what is shown if there is no model for it.
import { href } from "../router.ts";
import type { Kind } from "../session.ts";
import { Field } from "../ui/parts.tsx";

export function Prompt({ value, onInput }: { value: string; onInput: (value: string) => void }) {
  return (
    <Field label="Prompt">
      {(id) => (
        <textarea
          id={id}
          rows={4}
          required
          value={value}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

export function NoModel({ kind }: { kind: Kind }) {
  return (
    <p class="empty">
      Your key can use no {kind} model: the gateway has none, or the key's scope leaves them out. The{" "}
      <a href={href("models")}>models page</a> lists what it can use.
    </p>
  );
}
