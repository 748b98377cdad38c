/**
 * What a handler of received messages does with resources (§4.14.5): the operations of the collections themselves, as an administrator, over a
 * store that keeps their writes. Nothing is committed here: the engine commits `unit` together with the mark that the message is processed.
 *
 * What only a commit can tell, such as a unique value that another has, is told when the engine commits.
 */
import type { ResourceRefused } from '../../../config/handler.ts';
import type { Collection } from '../../../model/collection.ts';
import { type Authenticated, authenticated, operatorId } from '../../../model/principal.ts';
import type { EventEntry, Row, Unit } from '../../../store/store.ts';
import type { OpenTransaction, ResourceCall, Transaction } from '../../../webhooks/inbound/hand-on.ts';
import type { EventTypes } from '../../../webhooks/outbound/event-types/event-types.ts';
import { eventOf } from '../../collection/row.ts';
import type { Served } from '../../collection/served.ts';
import { type Serving, servedOf } from '../../collection/serving.ts';
import { postEventOperation, postedEntry } from '../events/post.ts';
import { askOf, contentOf } from './asking.ts';
import { listPage } from './list-page.ts';
import { orderChanges } from './order-changes.ts';
import { createOverlay, type NetWrite, type Overlay } from './overlay.ts';
import { refusalOf, refuse } from './refusal.ts';
import { type WriteCall, writeResource } from './write-resource.ts';

export type TransactionLimits = {
  /** Resources written and events emitted. */
  readonly handlerChangesMax: number;
  /** Reads and lists. */
  readonly handlerReadsMax: number;
  /** Octets of an event that is emitted. */
  readonly webhookContentBytesMax: number;
};

export type OpenTransactionOptions = {
  readonly serving: Serving;
  /** The declared ones. */
  readonly collections: ReadonlyMap<string, Collection>;
  readonly eventTypes: EventTypes;
  readonly limits: TransactionLimits;
};

/** What all transactions share: everything that takes long to make. */
type Shared = OpenTransactionOptions & {
  readonly principal: Authenticated;
  readonly served: (name: string) => Served;
  readonly emits: () => ReturnType<typeof postEventOperation>;
};

/** Characters of all documents of one unit: it goes to the store as one message. */
const unitCharactersMax = 64 * 1024 * 1024;

/** Made once, at start; the schemas of a collection are compiled when a handler first names it, those of event types when one first emits. */
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
  /** Writes are made one after the other, in the order they were called in: each begins with what the last one left. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(shared: Shared) {
    this.#shared = shared;
    this.#overlay = createOverlay(shared.serving.store);
  }

  /**
   * @param call with `fields`, `patch`, `query` and `object` as values or as their JSON texts
   * @returns the representation as JSON text; of `list` the page; undefined for nothing
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
    return { changes, events };
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
    if (posted === undefined) throw new Error('an event without a proposal');
    // It is nobody's, as what a handler creates; administrators and the members of its tenant see it.
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
