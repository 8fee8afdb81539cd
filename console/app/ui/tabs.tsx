// Tabs for keyboard and pointer.
import { normalizeProps, useMachine } from "@zag-js/preact";
import * as tabs from "@zag-js/tabs";
import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";

export interface Tab {
  value: string;
  label: string;
}

/** A row of tabs, and the panel of the selected one. */
export function Tabs(props: {
  label: string;
  tabs: Tab[];
  value: string;
  onChange: (value: string) => void;
  children: ComponentChildren;
}) {
  const service = useMachine(tabs.machine, {
    id: useId(),
    value: props.value,
    onValueChange: (details: { value: string }) => props.onChange(details.value),
  });
  const api = tabs.connect(service, normalizeProps);
  return (
    <div {...api.getRootProps()} class="tabs">
      {/* biome-ignore lint/a11y/useAriaPropsSupportedByRole: the machine sets its role */}
      <div {...api.getListProps()} aria-label={props.label}>
        {props.tabs.map((tab) => (
          <button key={tab.value} {...api.getTriggerProps({ value: tab.value })}>
            {tab.label}
          </button>
        ))}
      </div>
      {props.tabs
        .filter((tab) => tab.value === props.value)
        .map((tab) => (
          <div key={tab.value} {...api.getContentProps({ value: tab.value })}>
            {props.children}
          </div>
        ))}
    </div>
  );
}
