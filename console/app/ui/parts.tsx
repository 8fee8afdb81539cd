// Small components shared by all pages.
import type { ComponentChildren, JSX, RefObject } from "preact";
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Refused, words } from "../api.ts";
import { fullMoment, moment } from "./format.ts";

/** The head of a page. */
export function Head(props: { title: string; children?: ComponentChildren; actions?: ComponentChildren }) {
  return (
    <header class="head">
      <div>
        <h1 tabIndex={-1}>{props.title}</h1>
        {props.children && <p class="soft">{props.children}</p>}
      </div>
      {props.actions && <div class="actions">{props.actions}</div>}
    </header>
  );
}

/** What went wrong, where, and what to do. `reveal`: scrolls it into view, since the user's own action caused it. */
export function Problem(props: { error: unknown; reveal?: boolean }) {
  const { error, reveal = false } = props;
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    if (reveal) box.current?.scrollIntoView({ block: "nearest" });
  }, [error, reveal]);
  if (error === null || error === undefined) return null;
  const details: string[] = [];
  if (error instanceof Refused) {
    if (error.status !== null) details.push(`status ${error.status}`);
    if (error.code !== null) details.push(error.code);
    if (error.retryAfter !== null) details.push(`try again in ${error.retryAfter} s`);
    if (error.requestId !== null) details.push(`request ${error.requestId}`);
  }
  return (
    <div class="problem" role="alert" ref={box}>
      <p>{words(error)}</p>
      {details.length > 0 && <p class="soft">{details.join(" · ")}</p>}
    </div>
  );
}

/** A labeled control. */
export function Field(props: {
  label: string;
  hint?: string;
  class?: string;
  children: (id: string, describedBy: string | undefined) => JSX.Element;
}) {
  const id = useId();
  const hint = props.hint ? `${id}-hint` : undefined;
  return (
    <div class={`field ${props.class ?? ""}`}>
      <label for={id}>{props.label}</label>
      {props.children(id, hint)}
      {props.hint && (
        <p class="hint" id={hint}>
          {props.hint}
        </p>
      )}
    </div>
  );
}

/** Chooses one of a few. */
export function Choice(props: {
  label: string;
  value: string;
  options: readonly (readonly [value: string, text: string])[];
  onChange: (value: string) => void;
  hint?: string;
}) {
  return (
    <Field label={props.label} {...(props.hint ? { hint: props.hint } : {})}>
      {(id, hint) => (
        <select
          id={id}
          aria-describedby={hint}
          value={props.value}
          onChange={(event) => props.onChange(event.currentTarget.value)}
        >
          {props.options.map(([value, text]) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

/** A line of text. */
export function Line(props: {
  label: string;
  value: string;
  onInput: (value: string) => void;
  hint?: string;
  type?: string;
  min?: number;
  max?: number;
  step?: string;
  placeholder?: string;
  required?: boolean;
  disabled?: boolean;
  autocomplete?: string;
}) {
  const { label, hint, onInput, ...rest } = props;
  return (
    <Field label={label} {...(hint ? { hint } : {})}>
      {(id, described) => (
        <input
          id={id}
          aria-describedby={described}
          spellcheck={false}
          {...(rest as object)}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

/**
 * The button that submits a form or, while something is running, stops it. It is a single element, which does nothing while
 * it is `off`: removing or disabling a focused button would lose the focus.
 */
export function Submit(props: {
  words: string;
  off?: boolean;
  danger?: boolean;
  stop?: { words: string; act: () => void } | null;
}) {
  const { stop } = props;
  const off = props.off === true && !stop;
  return (
    <button
      type={stop ? "button" : "submit"}
      class={`button ${stop || props.danger ? "danger" : "primary"}`}
      aria-disabled={off}
      onKeyDown={(event) => {
        // Ignore repeats of a held key: the button has another meaning by now.
        if (event.repeat && event.key === "Enter") event.preventDefault();
      }}
      onClick={(event) => {
        const isSecond = event.detail > 1;
        // A click that stops must not also submit: the button is a submit button again before the browser acts on the click.
        if (off || isSecond || stop) event.preventDefault();
        if (!isSecond) stop?.act();
      }}
    >
      {stop?.words ?? props.words}
    </button>
  );
}

/** A button that copies a text. */
export function Copy(props: { text: string; label?: string }) {
  const [status, setStatus] = useState("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(props.text);
      setStatus("Copied");
    } catch {
      setStatus("Copying failed: select the text and copy it");
    }
    setTimeout(() => setStatus(""), 2500);
  };
  return (
    <span class="copy">
      <button type="button" class="button small" onClick={copy}>
        {props.label ?? "Copy"}
      </button>
      <span role="status" class="soft">
        {status}
      </span>
    </span>
  );
}

/** A column: its name, and the kind of its cells. Cells of `prose` are never as narrow as a word. */
export type Column = readonly [name: string, kind?: "number" | "prose"];

export interface Row {
  key: string;
  /** One per column; the first names the row. */
  cells: ComponentChildren[];
}

/** A table whose rows become cards if its columns don't fit, so that nothing is cut off and every action stays in view. */
export function Table(props: {
  caption: string;
  columns: readonly Column[];
  rows: Row[];
  /** Text to show if there are no rows. */
  empty?: string;
}) {
  const id = useId();
  const frame = useStacking();
  useFocusOfRows(frame);
  if (props.rows.length === 0 && props.empty)
    return (
      <div class="empty" ref={frame} tabIndex={-1}>
        {props.empty}
      </div>
    );
  return (
    <div class="wide" ref={frame} role="region" aria-labelledby={id} tabIndex={0}>
      <table>
        <caption id={id}>{props.caption}</caption>
        <thead>
          <tr>
            {props.columns.map(([name, kind]) => (
              <th key={name} scope="col" class={kind}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {props.rows.map(({ key, cells }) => (
            <tr key={key}>
              {props.columns.map(([name, kind], place) =>
                place === 0 ? (
                  <th key={name} scope="row" class={kind}>
                    {cells[place]}
                  </th>
                ) : (
                  <td key={name} class={kind} data-label={name}>
                    {cells[place]}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Measures a frame whenever it or its content changes. Window widths aren't enough, because names may be long. */
function useStacking() {
  const frame = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const element = frame.current;
    if (!element) return;
    const measure = () => {
      element.classList.remove("stacked");
      element.classList.toggle("stacked", element.scrollWidth > element.clientWidth);
    };
    measure();
    let width = element.clientWidth;
    const observer = new ResizeObserver(() => {
      if (element.clientWidth === width) return;
      width = element.clientWidth;
      // Deferred: an observer must not change what it observes.
      requestAnimationFrame(measure);
    });
    observer.observe(element);
    return () => observer.disconnect();
  });
  return frame;
}

/** Moves the focus to the list when the focused row or button is removed, so that the keyboard stays in place. */
function useFocusOfRows(list: RefObject<HTMLElement | null>) {
  // Checked before the rows change.
  const isWithin = list.current?.contains(document.activeElement) ?? false;
  useLayoutEffect(() => {
    if (isWithin && document.activeElement === document.body) list.current?.focus();
  });
}

/** An id or a name on one line. A long one ends in an ellipsis; a click selects all of it. */
export function Id(props: { of: string; plain?: boolean }) {
  const Tag = props.plain ? "span" : "code";
  return (
    <Tag class="id" title={props.of}>
      {props.of}
    </Tag>
  );
}

/** A day and a time on one line. `at`: seconds since 1970. */
export function When({ at }: { at: number }) {
  return (
    <time dateTime={new Date(at * 1000).toISOString()} title={fullMoment(at)}>
      {moment(at)}
    </time>
  );
}

/** Figures with their names. One that is false or null isn't shown. */
export function Stats(props: { facts: readonly (readonly [name: string, fact: string | false | null])[] }) {
  return (
    <dl class="stats">
      {props.facts.map(
        ([name, fact]) =>
          fact && (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{fact}</dd>
            </div>
          ),
      )}
    </dl>
  );
}

/** A word whose color only repeats its meaning. */
export function Badge(props: { kind: "good" | "bad" | "warn" | "plain"; children: ComponentChildren }) {
  return <span class={`badge ${props.kind}`}>{props.children}</span>;
}
