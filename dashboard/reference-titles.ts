/**
 * The titles of documents that others refer to, read once by id and shared by all views. Ids that one frame asks for go into few requests;
 * a document that the caller may not read keeps its id as its title.
 */
import { signal } from '@preact/signals';
import { titleOf } from './components/value.tsx';
import { isObject, send } from './send.ts';

const idsPerRequest = 100;
/** Titles beyond them begin a new cache: a tab may stay open for weeks. */
const titlesKept = 10_000;

const titles = signal<ReadonlyMap<string, string>>(new Map());
const asked = new Set<string>();
const waiting = new Map<string, Set<string>>();

/** @param path of the list. @returns undefined until it is known; components that call it are rendered again then */
export function titleOfReference(path: string, id: string): string | undefined {
  const name = `${path}/${id}`;
  const known = titles.value.get(name);
  if (known !== undefined || asked.has(name)) return known;
  asked.add(name);
  if (waiting.size === 0) setTimeout(readWaiting);
  waiting.set(path, (waiting.get(path) ?? new Set()).add(id));
  return undefined;
}

/** Keeps the titles of documents that a view has read anyway. */
export function keepTitles(path: string, documents: readonly Record<string, unknown>[]): void {
  if (titles.value.size > titlesKept) forgetTitles();
  const next = new Map(titles.value);
  for (const each of documents) next.set(`${path}/${each.id}`, titleOf(each));
  titles.value = next;
}

/** Forgets what was read: after a change, or for another caller. */
export function forgetTitles(): void {
  asked.clear();
  titles.value = new Map();
}

function readWaiting(): void {
  const all = [...waiting];
  waiting.clear();
  for (const [path, ids] of all) {
    const list = [...ids];
    for (let at = 0; at < list.length; at += idsPerRequest)
      void readTitles(path, list.slice(at, at + idsPerRequest));
  }
}

async function readTitles(path: string, ids: readonly string[]): Promise<void> {
  const query = new URLSearchParams({ limit: String(ids.length) });
  query.set('id[in]', ids.join(','));
  const reply = await send('GET', `${path}?${query}`).catch(() => undefined);
  if (isObject(reply?.json) && Array.isArray(reply.json.items))
    keepTitles(path, reply.json.items.filter(isObject));
}
