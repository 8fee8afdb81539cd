// The prompt for an image or a video.
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
