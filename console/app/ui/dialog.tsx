// A dialog that traps the focus and restores it when closed.
import * as dialog from "@zag-js/dialog";
import { normalizeProps, useMachine } from "@zag-js/preact";
import type { ComponentChildren } from "preact";
import { createPortal } from "preact/compat";
import { useId, useRef } from "preact/hooks";

/** The element focused before a dialog or a chain of dialogs. A fast typist may move the focus before the machine records it. */
let opener: HTMLElement | null = null;
/** A container of that element, as a fallback if it is removed: the list of a row, or the page. */
let around: HTMLElement | null = null;

function useOpener(open: boolean) {
  const wasOpen = useRef(false);
  const focused = document.activeElement;
  // The body has the focus if no element has it: for example between two dialogs, when the first is gone.
  const isSome = focused instanceof HTMLElement && focused !== document.body;
  if (open && !wasOpen.current && isSome && !focused.closest("[role=dialog]")) {
    opener = focused;
    around = focused.parentElement?.closest<HTMLElement>("[tabindex]") ?? null;
  }
  wasOpen.current = open;
}

export function Dialog(props: {
  open: boolean;
  title: string;
  /** Leaves it open when Escape is pressed or something outside is clicked, and is called instead. */
  onLeave?: () => void;
  onClose: () => void;
  children: ComponentChildren;
}) {
  useOpener(props.open);
  const service = useMachine(dialog.machine, {
    id: useId(),
    open: props.open,
    closeOnInteractOutside: !props.onLeave,
    closeOnEscape: !props.onLeave,
    onEscapeKeyDown: () => props.onLeave?.(),
    onInteractOutside: () => props.onLeave?.(),
    finalFocusEl: () => [opener, around].find((element) => element?.isConnected) ?? null,
    onOpenChange: (details: { open: boolean }) => {
      if (!details.open) props.onClose();
    },
  });
  const api = dialog.connect(service, normalizeProps);
  if (!api.open) return null;
  return createPortal(
    <>
      <div {...api.getBackdropProps()} class="backdrop" />
      <div {...api.getPositionerProps()} class="positioner">
        <div {...api.getContentProps()} class="dialog">
          <h2 {...api.getTitleProps()}>{props.title}</h2>
          {props.children}
        </div>
      </div>
    </>,
    document.body,
  );
}
