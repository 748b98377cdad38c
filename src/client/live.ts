/**
 * Lists that stay current, and the events that they follow. A live list opens its connection first and then reads, so that nothing is missed
 * in between; it reads again whenever a connection is new, because rights may have changed while there was none. Of each document it keeps
 * the version with which it read it, and drops events about earlier ones.
 *
 * For conditions and orders of numbers, texts and booleans the client decides how a changed document changes the list. Otherwise it reads the
 * list again, which costs a 304 if it is the same.
 */
import type { CollectionCalls, Doc, JsonPage, JsonQuery } from './collection.ts';
import { ComityError } from './error.ts';
import { type Line, openLine, type Parts, type Seen } from './line.ts';
import { backoff, type CallOptions, wait } from './send.ts';

/** `live`: connected and read. `waiting`: shown as it was, while the connection or the read is tried again. `ended`: by `stop`, or for good. */
export type LiveState = 'live' | 'waiting' | 'ended';

export type LiveQuery = {
  /** Ends the list. */
  readonly signal?: AbortSignal;
};

/** A list that stays current. @template P its page */
export type LiveList<P> = {
  /** A new object after each change; it is never changed itself. */
  readonly page: P;
  readonly state: LiveState;
  /** Why it ended or waits. */
  readonly error: Error | undefined;
  /** Calls back after each change of the page or the state. @returns a function that ends that */
  readonly subscribe: (listener: () => void) => () => void;
  /** Ends it: `page` stays as it is. */
  readonly stop: () => void;
};

/** The connection that the live lists of a client share. */
export type Connection = {
  /** @param patterns `tickets.*`, or `*` @returns a function that leaves it */
  follow(patterns: readonly string[], follower: Follower): () => void;
  close(): void;
};

type Follower = {
  /** Events are heard from now on: read. */
  onOpen(): void;
  onEvent(event: Seen): void;
  onLost(error: Error | undefined): void;
  onEnd(error: Error | undefined): void;
};

export function connect(parts: Parts): Connection {
  const followers = new Map<Follower, readonly string[]>();
  const opened = new Set<Follower>();
  let line: Line | undefined;

  const open = (): Line =>
    openLine(parts, undefined, {
      patterns: () => [...new Set([...followers.values()].flat())],
      onOpen: () => {
        for (const follower of followers.keys()) {
          if (opened.has(follower)) continue;
          opened.add(follower);
          follower.onOpen();
        }
      },
      onEvent: (event) => {
        for (const follower of opened) follower.onEvent(event);
      },
      onLost: (error) => {
        opened.clear();
        for (const follower of followers.keys()) follower.onLost(error);
      },
      onEnd: (error) => end(error),
    });

  function end(error?: Error): void {
    line = undefined;
    const all = [...followers.keys()];
    followers.clear();
    opened.clear();
    for (const follower of all) follower.onEnd(error);
  }

  return {
    follow(patterns, follower) {
      followers.set(follower, patterns);
      if (line === undefined) line = open();
      else line.extend();
      return () => {
        followers.delete(follower);
        opened.delete(follower);
        if (followers.size > 0) return;
        line?.close();
        line = undefined;
      };
    },
    close() {
      line?.close();
      end();
    },
  };
}

type Listing = {
  readonly connection: Connection;
  readonly calls: CollectionCalls;
  /** The name of the collection. */
  readonly name: string;
};

/** Resolves when the list was read. @throws ComityError if the first read is refused */
export async function openLiveList(
  listing: Listing,
  query: JsonQuery,
  { signal }: LiveQuery & CallOptions,
): Promise<LiveList<JsonPage>> {
  const list = new Live(listing, query);
  signal?.addEventListener('abort', () => list.stop());
  if (signal?.aborted === true) list.stop();
  await list.ready;
  if (list.state === 'ended') throw list.error ?? signal?.reason ?? new TypeError('the client is closed');
  return list;
}

const revision = /^"(\d+)/;
const minus = /^-/;
const limitDefault = 20;
const pageItemsMax = 1_000;
const itemsMax = 10_000;
/** Changes that come together are read together, and a busy collection is read twice a second. */
const gatherMs = 20;
const readEveryMs = 500;

class Live implements LiveList<JsonPage> {
  readonly ready: Promise<void>;
  readonly #listing: Listing;
  readonly #query: JsonQuery & { readonly limit: number };
  /** Events of other collections matter, and what they do is the server's to say. */
  readonly #isWide: boolean;
  readonly #leave: () => void;
  readonly #over = new AbortController();
  readonly #listeners = new Set<() => void>();
  readonly #keys: readonly SortKey[];
  #isReady: () => void = () => undefined;
  #page: JsonPage = { items: [], nextCursor: null };
  #state: LiveState = 'waiting';
  #error: Error | undefined;
  #isOpen = false;
  #isReading = false;
  /** A read is due. */
  #isStale = false;
  #readAt = 0;
  #fails = 0;
  /** Events that came while the list was read. */
  #waiting: Seen[] = [];
  /** No document of the page is of a later version than this when it was read. */
  #floor = 0;

  constructor(listing: Listing, query: JsonQuery) {
    const { limit = limitDefault, sort = [], fields } = query;
    if (limit > itemsMax) throw new RangeError(`a live list has at most ${itemsMax} documents`);
    this.#keys = sort.map((key) => ({ name: key.replace(minus, ''), isDescending: key.startsWith('-') }));
    const needed = ['id', ...this.#keys.map(({ name }) => name).filter((name) => name !== 'rank')];
    this.#query = {
      ...{ ...query, limit },
      ...(fields === undefined || fields.includes('*')
        ? {}
        : { fields: [...new Set([...fields, ...needed])] }),
    };
    this.#listing = listing;
    this.#isWide = query.expand !== undefined || namesPath(query.filter);
    this.ready = new Promise((resolve) => {
      this.#isReady = resolve;
    });
    this.#leave = listing.connection.follow([this.#isWide ? '*' : `${listing.name}.*`], {
      onOpen: () => {
        this.#isOpen = true;
        this.#waiting = [];
        this.#readSoon(0);
      },
      onEvent: (event) => this.#hear(event),
      onLost: (error) => {
        this.#isOpen = false;
        this.#become('waiting', error);
      },
      onEnd: (error) => this.#end(error),
    });
  }

  get page(): JsonPage {
    return this.#page;
  }

  get state(): LiveState {
    return this.#state;
  }

  get error(): Error | undefined {
    return this.#error;
  }

  // Functions of their own, so that frameworks can be given them: `useSyncExternalStore(list.subscribe, ...)`.
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  readonly stop = (): void => this.#end(undefined);

  #end(error: Error | undefined): void {
    if (this.#state === 'ended') return;
    this.#over.abort();
    // It is not there yet where the connection ends at once.
    this.#leave?.();
    this.#become('ended', error);
    this.#isReady();
  }

  #become(state: LiveState, error: Error | undefined, page = this.#page): void {
    if (this.#state === 'ended' || (this.#state === state && this.#error === error && this.#page === page))
      return;
    this.#state = state;
    this.#error = error;
    this.#page = page;
    for (const listener of this.#listeners) listener();
  }

  // Reading.

  #readSoon(afterMs = Math.max(gatherMs, this.#readAt + readEveryMs - Date.now())): void {
    if (this.#isStale) return;
    this.#isStale = true;
    void wait(afterMs, this.#over.signal).then(() => this.#read());
  }

  async #read(): Promise<void> {
    // A read that is due while one runs follows it, and one without a connection waits for that.
    if (this.#isReading || !this.#isOpen || this.#state === 'ended') {
      this.#isStale &&= this.#isReading;
      return;
    }
    this.#isReading = true;
    this.#isStale = false;
    this.#readAt = Date.now();
    try {
      const page = await this.#pages();
      this.#fails = 0;
      this.#floor = Math.max(0, ...page.items.map(versionOf));
      const waiting = this.#waiting;
      this.#waiting = [];
      this.#isReading = false;
      const changed = waiting.reduce((now: JsonPage, event) => this.#apply(now, event), page);
      if (this.#isOpen) this.#become('live', undefined, changed);
      else this.#become('waiting', this.#error, changed);
      this.#isReady();
    } catch (error) {
      this.#isReading = false;
      if (this.#over.signal.aborted) return;
      if (!mayPass(error)) return this.#end(error as Error);
      this.#become('waiting', error as Error);
      this.#fails += 1;
      this.#isStale = false;
      this.#readSoon(backoff(this.#fails));
    }
    if (this.#isStale) {
      this.#isStale = false;
      this.#readSoon();
    }
  }

  /** As many pages as the limit takes. */
  async #pages(): Promise<JsonPage> {
    const { limit, ...query } = this.#query;
    const options = { signal: this.#over.signal };
    let page = await this.#listing.calls.list({ ...query, limit: Math.min(limit, pageItemsMax) }, options);
    while (page.nextCursor !== null && page.items.length < limit) {
      const rest = Math.min(limit - page.items.length, pageItemsMax);
      const next = await this.#listing.calls.list(
        { ...query, limit: rest, cursor: page.nextCursor },
        options,
      );
      page = { ...next, items: [...page.items, ...next.items], ...included(page, next) };
    }
    return page;
  }

  // Events.

  #hear(event: Seen): void {
    if (this.#state === 'ended') return;
    if (this.#isReading) this.#waiting.push(event);
    else if (this.#state === 'live') this.#become('live', undefined, this.#apply(this.#page, event));
  }

  /** @returns the same page if the event changes nothing, or if what it changes must be read */
  #apply(page: JsonPage, { event, moved }: Seen): JsonPage {
    const { name } = this.#listing;
    if (moved !== undefined) {
      const [way, { collection, id }] = moved;
      if (way === 'left' && id !== undefined && collection === name && !this.#isWide)
        return this.#without(page, id);
      if (collection === name || this.#isWide) this.#readSoon();
      return page;
    }
    const isOwn = event.type.slice(0, event.type.lastIndexOf('.')) === name;
    const document = event.data.object as Doc;
    if (this.#isWide || (isOwn && this.#query.q !== undefined)) {
      this.#readSoon();
      return page;
    }
    if (!isOwn) return page;
    if (event.type.endsWith('.deleted')) return this.#without(page, document.id);
    const version = versionOf(document);
    if (version === 0) return page;
    const before = page.items.find(({ id }) => id === document.id);
    if (version <= Math.max(this.#floor, before === undefined ? 0 : versionOf(before))) return page;
    const isMatch = matches(this.#query.filter ?? {}, document);
    if (isMatch === undefined) this.#readSoon();
    if (isMatch === undefined) return page;
    return isMatch ? this.#with(page, document) : this.#without(page, document.id);
  }

  #without(page: JsonPage, id: string): JsonPage {
    const items = page.items.filter((item) => item.id !== id);
    if (items.length === page.items.length) return page;
    // What follows moves into its place.
    if (page.nextCursor !== null) this.#readSoon();
    return { ...page, items };
  }

  #with(page: JsonPage, document: Doc): JsonPage {
    const { fields, limit } = this.#query;
    const others = page.items.filter((item) => item.id !== document.id);
    const at = others.findIndex((item) => compareBy(this.#keys, document, item) < 0);
    const isBeyond = at === -1 && (page.nextCursor !== null || others.length >= limit);
    if (isBeyond && others.length === page.items.length) {
      if (page.nextCursor === null) this.#readSoon();
      return page;
    }
    // It was in the list, and may have changed places with one that follows.
    if (isBeyond) this.#readSoon();
    const items = others.toSpliced(at === -1 ? others.length : at, 0, selected(document, fields));
    if (items.length <= limit) return { ...page, items };
    // There is a further page now, whose cursor the server makes.
    this.#readSoon();
    return { ...page, items: items.slice(0, limit) };
  }
}

function included(page: JsonPage, next: JsonPage): object {
  const [one, other] = [page, next].map((each) => (each.included ?? {}) as Record<string, object>);
  if (page.included === undefined && next.included === undefined) return {};
  const names = Object.keys({ ...one, ...other });
  return { included: Object.fromEntries(names.map((name) => [name, { ...one?.[name], ...other?.[name] }])) };
}

/** True for a refusal that may be a different answer later. */
function mayPass(error: unknown): boolean {
  return !(error instanceof ComityError) || error.status === 0 || error.status >= 500 || error.status === 429;
}

/** The revision of the commit that wrote it, which its entity tag begins with; 0: unknown. */
function versionOf({ etag }: Doc): number {
  return Number(revision.exec(String(etag))?.[1] ?? 0);
}

function selected(document: Doc, fields: readonly string[] | undefined): Doc {
  if (fields === undefined || fields.includes('*')) return document;
  const top = new Set(['etag', ...fields]);
  const found: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(document)) {
    if (top.has(name)) found[name] = value;
    const inner = fields.flatMap((field) =>
      field.startsWith(`${name}.`) ? [field.slice(name.length + 1)] : [],
    );
    if (inner.length > 0 && !top.has(name))
      found[name] = Object.fromEntries(inner.flatMap((each) => entryOf(value, each)));
  }
  return found as Doc;
}

function entryOf(value: unknown, name: string): readonly [string, unknown][] {
  const found = (value as Readonly<Record<string, unknown>> | null)?.[name];
  return found === undefined ? [] : [[name, found]];
}

// Conditions and orders, as the server has them (src/model/matches.ts): null and absent members come first and are equal, texts compare by
// code point. What depends on the types of fields, which a client does not know, is left to the server.

type Json = Readonly<Record<string, unknown>>;

const connective = /^(and|or|not)$/;
const order = /^(gt|lt)e?$/;
/** A date may be an instant, which has several spellings. */
const dateLike = /^\d{4}-\d\d-\d\d/;
/** Besides, what may be relative to the present. */
const serversOwn = /^(\d{4}-\d\d-|now|today|this)/;
const zeros = /\.?0*Z$/;

/** A field within an object, or of a document that a reference names. */
function namesPath(filter: unknown): boolean {
  if (Array.isArray(filter)) return filter.some(namesPath);
  if (typeof filter !== 'object' || filter === null) return false;
  return Object.entries(filter).some(
    ([name, value]) => name.includes('.') || (connective.test(name) && namesPath(value)),
  );
}

/** @returns undefined if only the server can tell */
export function matches(filter: Json, document: Json): boolean | undefined {
  return every(Object.entries(filter), ([name, condition]) => {
    if (condition === undefined) return true;
    if (name === 'and') return every(condition as readonly Json[], (part) => matches(part, document));
    if (name === 'or')
      return negated(every(condition as readonly Json[], (part) => negated(matches(part, document))));
    if (name === 'not') return negated(matches(condition as Json, document));
    const isOperators = typeof condition === 'object' && condition !== null && !Array.isArray(condition);
    const operators = isOperators ? condition : { eq: condition };
    return every(Object.entries(operators), ([operator, value]) =>
      holds(operator, document[name] ?? null, value),
    );
  });
}

function negated(value: boolean | undefined): boolean | undefined {
  return value === undefined ? undefined : !value;
}

/** False if one is false, else undefined if one is. */
function every<T>(parts: readonly T[], test: (part: T) => boolean | undefined): boolean | undefined {
  const results = parts.map(test);
  if (results.includes(false)) return false;
  return results.includes(undefined) ? undefined : true;
}

function holds(operator: string, actual: unknown, value: unknown): boolean | undefined {
  if (operator === 'in') {
    const results = Array.isArray(value) ? value.map((each) => holds('eq', actual, each)) : [undefined];
    return results.includes(true) ? true : results.includes(undefined) ? undefined : false;
  }
  if (value === undefined) return true;
  if (typeof actual === 'object' && actual !== null) return undefined;
  const isNull = actual === null || value === null;
  if (!isNull && (typeof actual !== typeof value || serversOwn.test(String(value)))) return undefined;
  if (operator === 'eq') return actual === value;
  if (operator === 'ne') return actual !== value;
  if (!order.test(operator) || value === null) return undefined;
  if (actual === null) return false;
  const found = compareScalars(actual, value);
  if (found === 0) return operator.endsWith('e');
  return operator.startsWith('g') === found > 0;
}

type SortKey = { readonly name: string; readonly isDescending: boolean };

/** Without a key by id; the id breaks ties in the direction of the last key. */
function compareBy(keys: readonly SortKey[], one: Json, other: Json): number {
  const last = { name: 'id', isDescending: keys.at(-1)?.isDescending ?? false };
  for (const { name, isDescending } of [...keys, last]) {
    const order = compareScalars(valueAt(one, name), valueAt(other, name));
    if (order !== 0) return isDescending ? -order : order;
  }
  return 0;
}

function valueAt(document: Json, path: string): unknown {
  return path.split('.').reduce<unknown>((value, name) => (value as Json | null)?.[name] ?? null, document);
}

function compareScalars(one: unknown, other: unknown): number {
  if (one === null || other === null) return Number(one !== null) - Number(other !== null);
  if (typeof one !== 'string' || typeof other !== 'string') return Number(one) - Number(other);
  const [left, right] = [comparable(one), comparable(other)];
  for (let at = 0; ; at += 1) {
    const [a, b] = [left.codePointAt(at), right.codePointAt(at)];
    if (a !== b) return (a ?? -1) - (b ?? -1);
    if (a === undefined) return 0;
  }
}

/** Removes the zeros at the end of an instant in UTC, so that of two texts with the same beginning the longer one is later. */
function comparable(text: string): string {
  return dateLike.test(text) ? text.replace(zeros, '') : text;
}
