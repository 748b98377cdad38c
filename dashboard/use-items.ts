/** The items of a list while a view shows them, asked for again from time to time. */
import { useEffect, useState } from 'preact/hooks';
import { isObject, send } from './send.ts';

export type Item = Readonly<Record<string, unknown>>;

/** @returns undefined until the first response, and if the caller may not read the list */
export function useItems(path: string, everyMs: number): readonly Item[] | undefined {
  const [items, setItems] = useState<readonly Item[] | undefined>(undefined);
  useEffect(() => {
    let isShown = true;
    let timer = 0;
    const ask = async () => {
      const reply = await send('GET', path).catch(() => undefined);
      if (!isShown) return;
      if (isObject(reply?.json) && Array.isArray(reply.json.items))
        setItems(reply.json.items.filter(isObject));
      if (reply === undefined || reply.status < 400) timer = window.setTimeout(ask, everyMs);
    };
    void ask();
    return () => {
      isShown = false;
      clearTimeout(timer);
    };
  }, [path, everyMs]);
  return items;
}
