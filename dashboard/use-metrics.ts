/** The metrics of the last minutes while a view shows them, newest first. */
import { useEffect, useState } from 'preact/hooks';
import { readMetrics, type Sample } from './metrics.ts';

export type Reading = { readonly atMs: number; readonly samples: readonly Sample[] };

const periodMs = 2000;

/** @param kept readings, each `periodMs` after the one before; none if the caller may not read metrics */
export function useMetrics(kept: number): readonly Reading[] {
  const [readings, setReadings] = useState<readonly Reading[]>([]);
  useEffect(() => {
    let isShown = true;
    let timer = 0;
    const ask = async () => {
      const samples = await readMetrics().catch(() => undefined);
      if (!isShown) return;
      if (samples !== undefined)
        setReadings((before) => [{ atMs: performance.now(), samples }, ...before].slice(0, kept));
      timer = window.setTimeout(ask, periodMs);
    };
    void ask();
    return () => {
      isShown = false;
      clearTimeout(timer);
    };
  }, [kept]);
  return readings;
}
