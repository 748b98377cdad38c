/**
 * The titles of documents, and of those that others refer to, which are read once by id and shared by all views. Ids that one frame asks for
 * go into few requests; a document that the caller may not read keeps its id as its title.
 */
import { signal } from '@preact/signals';
import { type Listed, listOf, resolve } from './description.ts';
import { dateText, displayedText, timeText } from './presentation.ts';
import { isObject, send } from './send.ts';

const idsPerRequest = 100;
/** Documents beyond them begin a new cache: a tab may stay open for weeks. */
const documentsKept = 10_000;
/** A title may have the title of another document in it, and no title of a third. */
const depthMax = 1;

type Members = Readonly<Record<string, unknown>>;

/** The members that titles are made of, by the path of the list and the id. */
const known = signal<ReadonlyMap<string, Members>>(new Map());
const asked = new Set<string>();
const waiting = new Map<string, Set<string>>();

/** Members that name a document to people where the declaration does not say which do, the best first. */
const titleMembers: readonly string[] = ['name', 'title', 'email', 'type', 'subject', 'url'];
const placeholder = /\{([^{}]*)\}/g;

/** The members in the title of each document of the list. */
export function membersOfTitle(list: Listed | undefined): readonly string[] {
  const template = list?.schema['x-presentation']?.title;
  if (template !== undefined) return [...template.matchAll(placeholder)].map(([, name = '']) => name);
  const first = titleMembers.find((name) => list?.schema.properties?.[name] !== undefined);
  return first === undefined ? [] : [first];
}

/** The id of a document, as the path of its list's members has it. */
export function idOf(list: Listed, document: Members): string {
  return String(document[list.member?.parameter ?? 'id'] ?? document.id ?? '');
}

/** A one-line name of a document: as the declaration says, or the first member that names things; its id if it has neither. */
export function titleOf(list: Listed | undefined, document: unknown, depth = 0): string {
  if (!isObject(document)) return '';
  const template = list?.schema['x-presentation']?.title;
  const declared = template?.replaceAll(placeholder, (_, name: string) =>
    partOf(list, document, name, depth),
  );
  if (declared !== undefined && /[\p{L}\p{N}]/u.test(declared)) return declared.trim();
  const found = titleMembers
    .map((name) => document[name])
    .find((value) => typeof value === 'string' && value !== '');
  return String(found ?? document.id ?? '');
}

/** The text of a member, of an object within the document too, in its title. */
function partOf(list: Listed | undefined, document: Members, path: string, depth: number): string {
  const value = path
    .split('.')
    .reduce<unknown>((part, name) => (isObject(part) ? part[name] : undefined), document);
  if (value === undefined || value === null) return '';
  const schema = resolve(list?.schema.properties?.[path]);
  const target = list?.references.get(path);
  if (target !== undefined && depth < depthMax)
    return titleOfReference(target, String(value), depth + 1) ?? '…';
  if (schema.format === 'date-time') return timeText(String(value), true);
  if (schema.format === 'date') return dateText(String(value));
  return displayedText(value, schema['x-display'] ?? {}, document) ?? String(value);
}

/** @param path of the list. @returns undefined until it is known; components that call it are rendered again then */
export function titleOfReference(path: string, id: string, depth = 0): string | undefined {
  const name = `${path}/${id}`;
  const document = known.value.get(name);
  if (document !== undefined) return titleOf(listOf(path), document, depth);
  if (asked.has(name)) return undefined;
  asked.add(name);
  if (waiting.size === 0) setTimeout(readWaiting);
  waiting.set(path, (waiting.get(path) ?? new Set()).add(id));
  return undefined;
}

/** Keeps what the titles of documents are made of which a view has read anyway. */
export function keepTitles(path: string, documents: readonly Members[]): void {
  if (known.value.size > documentsKept) forgetTitles();
  const own = membersOfTitle(listOf(path)).map((name) => name.split('.', 1)[0] ?? '');
  const names = new Set(['id', ...titleMembers, ...own, ...currenciesOf(listOf(path), own)]);
  const next = new Map(known.value);
  for (const each of documents) {
    const kept = Object.entries(each).filter(([name]) => names.has(name));
    next.set(`${path}/${each.id}`, Object.fromEntries(kept));
  }
  known.value = next;
}

/** The members that have the currency of money in a title. */
function currenciesOf(list: Listed | undefined, names: readonly string[]): readonly string[] {
  const { properties = {} } = list?.schema ?? {};
  return names.flatMap((name) => resolve(properties[name])['x-display']?.currencyField ?? []);
}

/** Forgets what was read: after a change, or for another caller. */
export function forgetTitles(): void {
  asked.clear();
  known.value = new Map();
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
