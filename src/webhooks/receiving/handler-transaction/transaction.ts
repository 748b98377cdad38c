/**
 * The transaction of a handler (§4.14.5): the operations of the collections themselves, as an administrator, over a
 * store that keeps their writes. Nothing is committed here: the engine commits `unit` together with the state of the
 * message. Conflicts that only a commit can detect, such as a unique value that is taken, appear then.
 */
import type { ResourceRefused } from '../../../config/handler.ts';
import type { Collection } from '../../../model/collection.ts';
import { equalJson } from '../../../model/json-value.ts';
import { memberAt } from '../../../model/matches.ts';
import { type Authenticated, authenticated, operatorId } from '../../../model/principal.ts';
import { eventOf } from '../../../resources/collection/row.ts';
import type { Served } from '../../../resources/collection/served.ts';
import { type Serving, servedOf } from '../../../resources/collection/serving.ts';
import { referencesOf } from '../../../resources/document/references.ts';
import type { EventEntry, Row, Unit } from '../../../store/store.ts';
import type { EventTypes } from '../../sending/event-types/event-types.ts';
import { postEventOperation, postedEntry } from '../../sending/events/post-event.ts';
import type { OpenTransaction, ResourceCall, Transaction } from '../hand-on.ts';
import { askOf, contentOf, refusalOf, refuse } from './asking.ts';
import { listPage } from './list-page.ts';
import { createOverlay, type NetWrite, type Overlay } from './overlay.ts';
import { type WriteCall, writeResource } from './write-resource.ts';

export type TransactionLimits = {
  readonly handlerChangesMax: number;
  readonly handlerReadsMax: number;
  /** Octets of an emitted event. */
  readonly webhookContentBytesMax: number;
};

export type OpenTransactionOptions = {
  readonly serving: Serving;
  /** The declared ones. */
  readonly collections: ReadonlyMap<string, Collection>;
  readonly eventTypes: EventTypes;
  readonly limits: TransactionLimits;
};

/** What all transactions share because it takes long to create. */
type Shared = OpenTransactionOptions & {
  readonly principal: Authenticated;
  readonly served: (name: string) => Served;
  readonly emits: () => ReturnType<typeof postEventOperation>;
};

/** Characters of all documents of one unit: it goes to the store as one message. */
const unitCharactersMax = 64 * 1024 * 1024;

/**
 * Called once, at start; the schemas of a collection are compiled when a handler first names it, those of event types
 * when one first emits.
 */
export function createOpenTransaction(options: OpenTransactionOptions): OpenTransaction {
  const { serving, collections, eventTypes, limits } = options;
  const known = new Map<string, Served>();
  let emits: ReturnType<typeof postEventOperation> | undefined;
  const shared: Shared = {
    ...options,
    principal: authenticated({ id: operatorId, scopes: ['read', 'write', 'webhooks', 'admin'] }),
    served(name) {
      const collection = collections.get(name);
      if (collection === undefined)
        throw refuse('not_found', `no collection is named ${JSON.stringify(name)}`);
      const served = known.get(name) ?? servedOf(serving, collection);
      known.set(name, served);
      return served;
    },
    emits() {
      emits ??= postEventOperation({ ...serving, ...limits, eventTypes, collections, path: '' });
      return emits;
    },
  };
  return () => new HandlerTransaction(shared);
}

class HandlerTransaction implements Transaction {
  readonly #shared: Shared;
  readonly #overlay: Overlay;
  #reads = 0;
  /** The last write. Writes run one after the other in the order of their calls, so that each sees the previous one. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(shared: Shared) {
    this.#shared = shared;
    this.#overlay = createOverlay(shared.serving.store);
  }

  /**
   * @param call with `fields`, `patch`, `query` and `object` as values or as their JSON texts
   * @returns the representation as JSON text; for `list` the page; undefined for nothing
   * @throws ResourceRefused, StoreUnavailable
   */
  async call(call: ResourceCall): Promise<unknown> {
    if (call.do === 'read') return this.#read(call.collection, call.id);
    if (call.do === 'list') {
      this.#countRead();
      const { principal, serving } = this.#shared;
      const served = this.#shared.served(call.collection);
      return listPage(served, this.#overlay.store, principal, call.query, serving.queryLimits);
    }
    const made = this.#last.then(() => (call.do === 'emit' ? this.#emit(call) : this.#write(call)));
    this.#last = made.catch(() => undefined);
    return made;
  }

  unit(): Unit {
    const { collections, served, serving } = this.#shared;
    const entries = this.#overlay.writes();
    const writes = entries.filter(
      (entry): entry is NetWrite => 'expect' in entry && entry.kind !== undefined,
    );
    const changes = orderChanges(writes, collections).map(({ table, id, expect, next }) => ({
      table,
      id,
      expect,
      next,
    }));
    const events: EventEntry[] = [];
    for (const entry of entries) {
      if (!('expect' in entry)) events.push(entry.entry(`evt_${serving.newId()}`));
      else if (entry.kind !== undefined) {
        events.push(eventOf(served(entry.table), entry.kind, entry, entry.at));
      }
    }
    return { changes: [...changes, ...this.#overlay.overtaken()], events };
  }

  async #read(collection: string, id: unknown): Promise<string | undefined> {
    this.#countRead();
    const { collection: found } = this.#shared.served(collection);
    if (typeof id !== 'string' || !id.isWellFormed() || id.includes('\0')) return undefined;
    const row: Row | undefined = await this.#overlay.store.read(found.name, id);
    return row === undefined || row.deletedAt !== null ? undefined : row.doc;
  }

  async #write(call: WriteCall): Promise<string | undefined> {
    this.#countChange();
    const served = { ...this.#shared.served(call.collection), store: this.#overlay.store };
    return writeResource(served, this.#shared.principal, call);
  }

  async #emit(call: Extract<ResourceCall, { do: 'emit' }>): Promise<undefined> {
    this.#countChange();
    const { principal, serving } = this.#shared;
    const emits = this.#shared.emits();
    const ask = askOf(principal, []);
    const { type, tenant } = call;
    const object: unknown = typeof call.object === 'string' ? JSON.parse(call.object) : call.object;
    const content = JSON.stringify({ type, data: { object }, ...(tenant === undefined ? {} : { tenant }) });
    const understood = await contentOf(emits, ask, content);
    const proposal = await emits.propose?.(ask, await emits.standing(ask), understood);
    if (proposal === undefined || proposal.problem !== null)
      throw refusalOf(proposal?.problem ?? { code: 'internal' });
    const { posted } = proposal;
    if (posted === undefined) throw new Error('a proposed event requires its content');
    // Without an owner, like resources that a handler creates; administrators and the members of its tenant see it.
    const at = serving.clock();
    this.#overlay.append({ entry: (id) => postedEntry(posted, { id, at, owner: null }) }, content.length);
    return undefined;
  }

  #countRead(): void {
    this.#reads += 1;
    const { handlerReadsMax } = this.#shared.limits;
    if (this.#reads > handlerReadsMax) throw tooMuch(`reads more than ${handlerReadsMax} times`);
  }

  #countChange(): void {
    const { handlerChangesMax } = this.#shared.limits;
    if (this.#overlay.size() >= handlerChangesMax)
      throw tooMuch(`makes more than ${handlerChangesMax} changes`);
    if (this.#overlay.characters() > unitCharactersMax) {
      throw tooMuch(`writes more than ${unitCharactersMax} characters`);
    }
  }
}

function tooMuch(message: string): ResourceRefused {
  return refuse('content_too_large', `a handler that ${message} for one message`);
}

/**
 * Orders the writes of a handler (§4.14.5). The store checks each change against those before it, and each row changes
 * once, to its final state: so a referenced resource must be created first, a deleted one must no longer be referenced
 * by then, and a unique value must be free before another row takes it. Otherwise writes keep the order in which they
 * began.
 *
 * @returns the same writes; if they form a cycle, the store reports the conflict
 */
function orderChanges(
  writes: readonly NetWrite[],
  collections: ReadonlyMap<string, Collection>,
): readonly NetWrite[] {
  if (writes.length < 2) return writes;
  const earlier = writes.map((): number[] => []);
  addReferences(writes, collections, earlier);
  addUniques(writes, collections, earlier);
  return sorted(writes, earlier);
}

function addReferences(
  writes: readonly NetWrite[],
  collections: ReadonlyMap<string, Collection>,
  earlier: readonly number[][],
): void {
  const created = placesOf(writes, 'created');
  const deleted = placesOf(writes, 'deleted');
  for (const [place, { table, next, before }] of writes.entries()) {
    const collection = collections.get(table);
    if (collection === undefined || collection.references.length === 0) continue;
    const target = (field: string) =>
      collection.references.find((reference) => reference.field === field)?.collection ?? '';
    if (created.size > 0) {
      for (const { field, id } of next?.references ?? []) {
        const maker = created.get(`${target(field)} ${id}`);
        if (maker !== undefined && maker !== place) earlier[place]?.push(maker);
      }
    }
    if (deleted.size === 0 || before === undefined) continue;
    const fields = JSON.parse(before.doc) as Readonly<Record<string, unknown>>;
    for (const { field, id } of referencesOf(collection, fields)) {
      const remover = deleted.get(`${target(field)} ${id}`);
      if (remover !== undefined && remover !== place) earlier[remover]?.push(place);
    }
  }
}

function placesOf(writes: readonly NetWrite[], kind: NetWrite['kind']): ReadonlyMap<string, number> {
  const places = new Map<string, number>();
  for (const [place, write] of writes.entries()) {
    if (write.kind === kind) places.set(`${write.table} ${write.id}`, place);
  }
  return places;
}

function addUniques(
  writes: readonly NetWrite[],
  collections: ReadonlyMap<string, Collection>,
  earlier: readonly number[][],
): void {
  const freed = new Map<string, number>();
  const taken: (readonly [value: string, place: number])[] = [];
  for (const [place, { table, before, next, kind }] of writes.entries()) {
    const unique = collections.get(table)?.unique ?? [];
    if (unique.length === 0) continue;
    const fieldsBefore: unknown = before === undefined ? undefined : JSON.parse(before.doc);
    const fieldsAfter: unknown = next === null || kind === 'deleted' ? undefined : JSON.parse(next.doc);
    for (const { name, path } of unique) {
      const [left, right] = [memberAt(fieldsBefore, path) ?? null, memberAt(fieldsAfter, path) ?? null];
      if (equalJson(left, right)) continue;
      // Any number of rows may hold null.
      if (left !== null) freed.set(JSON.stringify([table, name, left]), place);
      if (right !== null) taken.push([JSON.stringify([table, name, right]), place]);
    }
  }
  for (const [value, place] of taken) {
    const frees = freed.get(value);
    if (frees !== undefined && frees !== place) earlier[place]?.push(frees);
  }
}

/**
 * Sorts each write after those that must be earlier. Uses its own stack, because a chain may be as long as the unit.
 */
function sorted(writes: readonly NetWrite[], earlier: readonly number[][]): readonly NetWrite[] {
  const order: NetWrite[] = [];
  const state = new Uint8Array(writes.length);
  for (let start = 0; start < writes.length; start += 1) {
    const stack = [start];
    while (stack.length > 0) {
      const place = stack.at(-1) ?? 0;
      const left = state[place] === 0 ? (earlier[place] ?? []).filter((other) => state[other] === 0) : [];
      if (state[place] === 0) state[place] = 1;
      if (left.length > 0) {
        stack.push(...left);
        continue;
      }
      stack.pop();
      const write = writes[place];
      if (state[place] !== 2 && write !== undefined) order.push(write);
      state[place] = 2;
    }
  }
  return order;
}
