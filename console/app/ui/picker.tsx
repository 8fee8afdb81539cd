// Chooses any number of options. None chosen means all.
import type { ComponentChildren } from "preact";
import { counted } from "./format.ts";

export function Picker(props: {
  label: string;
  options: readonly string[];
  chosen: readonly string[];
  onChange: (chosen: string[]) => void;
  /** How many are chosen in other ways, in `children`. */
  more?: number;
  children?: ComponentChildren;
}) {
  const count = props.chosen.length + (props.more ?? 0);
  return (
    <details class="picker">
      <summary>
        {props.label}: {count === 0 ? "all" : counted(count, "choice")}
      </summary>
      <fieldset>
        <legend class="hidden">{props.label}</legend>
        <div class="options">
          {props.options.map((option) => (
            <label key={option} class="check">
              <input
                type="checkbox"
                checked={props.chosen.includes(option)}
                onChange={(event) =>
                  props.onChange(
                    event.currentTarget.checked
                      ? [...props.chosen, option]
                      : props.chosen.filter((other) => other !== option),
                  )
                }
              />
              <code>{option}</code>
            </label>
          ))}
        </div>
        {props.children}
      </fieldset>
    </details>
  );
}
