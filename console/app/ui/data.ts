// Data that a page gets from the gateway: fetched when the page opens, then polled while it is visible. A hidden tab sends no
// requests and sets no timers; it catches up as soon as it is visible again.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";

export interface Data<T> {
  value: T | null;
  error: unknown;
  again: () => void;
}

/** `ask`: sends the request; `on`: refetch immediately when one of these changes; `every`: pause in milliseconds. */
export function useData<T>(ask: (signal: AbortSignal) => Promise<T>, on: unknown[], every?: number): Data<T> {
  const [value, setValue] = useState<T | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [round, setRound] = useState(0);
  const latestAsk = useRef(ask);
  latestAsk.current = ask;
  useEffect(() => {
    const controller = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isMissed = false;
    const look = async () => {
      isMissed = document.hidden;
      if (isMissed) return;
      try {
        const found = await latestAsk.current(controller.signal);
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
