/**
 * Requests of the pages of webhooks. The dashboard and the portal show the same pages with credentials of their own, so the pages get
 * the sender from the context and know neither.
 */
import { createContext } from 'preact';
import { useContext, useEffect, useRef, useState } from 'preact/hooks';
import { type Problem, problemOf, type Reply, type SendOptions } from '../send.ts';

export type Api = {
  /** @param path below the base, such as `/endpoints` */
  readonly send: (method: string, path: string, options?: SendOptions) => Promise<Reply>;
};

export const ApiContext = createContext<Api | undefined>(undefined);

export function useApi(): Api {
  const api = useContext(ApiContext);
  if (api === undefined) throw new Error('a page of webhooks needs the context of the API');
  return api;
}

export type Page<T> = { readonly items: readonly T[]; readonly nextCursor: string | null };

export type Read<T> = {
  /** Undefined: not read yet, or refused. */
  readonly value: T | undefined;
  /** For `If-Match`. */
  readonly tag: string | null;
  /** With `Prefer: count=exact`. */
  readonly count: number | undefined;
  readonly problem: Problem | undefined;
  /** False if the answer's `Allow` leaves the method out. */
  readonly allows: (method: string) => boolean;
  readonly read: () => Promise<void>;
};

type Found = { readonly path: string; readonly reply: Reply };

/**
 * Reads a path, and again whenever it changes or `everyMs` has passed in a visible page.
 * @param path undefined: nothing is read
 */
export function useRead<T>(path: string | undefined, options: ReadOptions = {}): Read<T> {
  const api = useApi();
  const { everyMs, counted = false } = options;
  const [found, setFound] = useState<Found | undefined>(undefined);
  // An answer that was overtaken by that of a later path must not take its place.
  const asked = useRef(path);
  const read = async () => {
    if (path === undefined) return;
    const reply = await api.send('GET', path, counted ? { headers: { Prefer: 'count=exact' } } : {});
    if (path === asked.current) setFound({ path, reply });
  };
  useEffect(() => {
    asked.current = path;
    void read();
    if (everyMs === undefined) return undefined;
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible') void read();
    }, everyMs);
    return () => clearInterval(timer);
  }, [path, everyMs]);
  // What an earlier path gave is of another page.
  const reply = found?.path === path ? found?.reply : undefined;
  const count = reply?.headers.get('X-Total-Count') ?? null;
  return {
    value: reply !== undefined && reply.status < 300 ? (reply.json as T) : undefined,
    tag: reply?.headers.get('ETag') ?? null,
    count: count === null ? undefined : Number(count),
    problem: reply === undefined ? undefined : problemOf(reply),
    allows: (method) => reply?.headers.get('Allow')?.split(', ').includes(method) ?? true,
    read,
  };
}

export type ReadOptions = { readonly everyMs?: number; readonly counted?: boolean };

/** A query of a list. Undefined and empty values are left out. */
export function queryOf(parameters: Readonly<Record<string, string | number | undefined>>): string {
  const pairs = Object.entries(parameters).flatMap(([name, value]) =>
    value === undefined || value === '' ? [] : [[name, String(value)] as [string, string]],
  );
  return pairs.length === 0 ? '' : `?${new URLSearchParams(pairs)}`;
}

/** The filter of a list of deliveries, as parameters of the API. */
export type DeliveryFilter = Readonly<Record<string, string | undefined>>;

export const liveMs = 3000;
