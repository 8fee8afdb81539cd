// What a page shows of the gateway: asked when it is opened, and again from time to time while it is looked at. A tab that
// is hidden asks nothing and has no timer: what it missed it asks as soon as it is seen again.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";

export interface Data<T> {
  value: T | null;
  error: unknown;
  again: () => void;
}

/** `ask`: what to ask; `on`: asked at once when one of these changes; `every`: pause in milliseconds. */
export function useData<T>(ask: (signal: AbortSignal) => Promise<T>, on: unknown[], every?: number): Data<T> {
  const [value, setValue] = useState<T | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [round, setRound] = useState(0);
  const asking = useRef(ask);
  asking.current = ask;
  useEffect(() => {
    const controller = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isMissed = false;
    const look = async () => {
      isMissed = document.hidden;
      if (isMissed) return;
      try {
        const found = await asking.current(controller.signal);
        if (controller.signal.aborted) return;
        setValue(found);
        setError(null);
      } catch (failed) {
        if (controller.signal.aborted) return;
        setError(failed);
      }
      if (every !== undefined) timer = setTimeout(look, every);
    };
    const turn = () => {
      if (isMissed) look();
    };
    document.addEventListener("visibilitychange", turn);
    look();
    return () => {
      document.removeEventListener("visibilitychange", turn);
      controller.abort();
      clearTimeout(timer);
    };
  }, [...on, round]);
  return { value, error, again: useCallback(() => setRound((before) => before + 1), []) };
}
