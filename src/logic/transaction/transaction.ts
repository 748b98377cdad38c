/**
 * The transaction of an application's functions (§4.14.5): the operations of the collections themselves, as an
 * administrator, over a store that keeps their writes. Nothing is committed here: whoever runs the function commits
 * `unit`, with the response to a request or with the state of a message. Conflicts that only a commit can detect, such
 * as a unique value that is taken, appear then.
 */
import type { ResourceRefused } from '../../config/handler.ts';
import type { Collection } from '../../model/collection.ts';
import { type Authenticated, authenticated, operatorId, type Principal } from '../../model/principal.ts';
import { ownerOf } from '../../resources/collection/proposing.ts';
import { eventOf } from '../../resources/collection/row.ts';
import type { Served } from '../../resources/collection/served.ts';
import { type Serving, servedOf } from '../../resources/collection/serving.ts';
import { wholeView } from '../../resources/collection/view.ts';
import type { Change, EventEntry, Row, RowName, Store, Unit } from '../../store/store.ts';
import { refuse } from './asking.ts';
import { largestPage, listPage } from './list-page.ts';
import { orderChanges } from './order-changes.ts';
import { createOverlay, type Emitted, type NetWrite, type Overlay } from './overlay.ts';
import type { OpenTransaction, ResourceCall, Scope, Transaction } from './resource-call.ts';
import { type RunHooks, UnitLogic } from './unit-logic.ts';
import { type WriteCall, writeResource } from './write-resource.ts';

export type TransactionLimits = {
  readonly handlerChangesMax: number;
  readonly handlerReadsMax: number;
};

/** Posts an event with the unit. @throws ResourceRefused */
export type EmitEvent = (
  call: Extract<ResourceCall, { do: 'emit' }>,
  principal: Authenticated,
) => Promise<Emitted & { readonly characters: number }>;

/** The rows of a mail that is sent after the commit. @param mail a value or its JSON text @throws ResourceRefused */
export type KeepMail = (mail: unknown) => Promise<readonly Change[]>;

export type OpenTransactionOptions = {
  readonly serving: Serving;
  /** The declared ones. */
  readonly collections: ReadonlyMap<string, Collection>;
  /** Built-in collections that functions read and never write: accounts. Default: none. */
  readonly readable?: ReadonlyMap<string, Collection>;
  readonly emit: EmitEvent;
  /** Absent: mail is refused. */
  readonly keepMail?: KeepMail;
  /** Absent: no collection has hooks. */
  readonly runHooks?: RunHooks;
  readonly limits: TransactionLimits;
};

/** What all transactions share because it takes long to create. */
type Shared = OpenTransactionOptions & {
  readonly principal: Authenticated;
  readonly served: (name: string) => Served;
};

/** Characters of all documents of one unit: it goes to the store as one message. */
const unitCharactersMax = 64 * 1024 * 1024;

/** Called once, at start; the schemas of a collection are compiled when a function first names it. */
export function createOpenTransaction(options: OpenTransactionOptions): OpenTransaction {
  const { serving, collections, readable } = options;
  const known = new Map<string, Served>();
  const shared: Shared = {
    ...options,
    principal: authenticated({ id: operatorId, scopes: ['read', 'write', 'webhooks', 'admin'] }),
    served(name) {
      const collection = collections.get(name) ?? readable?.get(name);
      if (collection === undefined)
        throw refuse('not_found', `no collection is named ${JSON.stringify(name)}`);
      // Functions get documents as they are stored, from every call alike.
      const whole = wholeView(collection);
      const served = known.get(name) ?? { ...servedOf(serving, collection), view: () => whole };
      known.set(name, served);
      return served;
    },
  };
  return (caller) => new LogicTransaction(shared, caller);
}

class LogicTransaction implements Transaction {
  readonly caller: Principal;
  readonly #shared: Shared;
  readonly #owner: string | null;
  readonly #overlay: Overlay;
  readonly call: Scope['call'];
  #reads = 0;

  constructor(shared: Shared, caller: Principal | undefined) {
    this.#shared = shared;
    this.caller = caller ?? shared.principal;
    this.#owner = caller === undefined ? null : ownerOf(caller);
    this.#overlay = createOverlay(shared.serving.store);
    const own = this.scope(0);
    this.call = (call) => own.call(call);
  }

  get store(): Store {
    return this.#overlay.store;
  }

  scope(depth: number): Scope {
    return new LogicScope(depth, (call) => this.#carryOut(call, depth));
  }

  async read(table: string, id: string): Promise<Row | undefined> {
    const row: Row | undefined = await this.#overlay.store.read(table, id);
    this.#overlay.lean({ table, id });
    return row;
  }

  async #carryOut(call: ResourceCall, depth: number): Promise<string | undefined> {
    switch (call.do) {
      case 'get':
        return this.#read(call.collection, call.id);
      case 'list':
        return this.#list(call);
      case 'emit':
        return this.#emit(call);
      case 'mail':
        return this.#mail(call.mail);
      default:
        return this.#write(call, depth);
    }
  }

  unit(): Unit {
    const { collections, served, serving } = this.#shared;
    const entries = this.#overlay.writes();
    const writes: NetWrite[] = [];
    const kept: Change[] = [];
    const events: EventEntry[] = [];
    for (const entry of entries) {
      if ('kept' in entry) kept.push(entry.kept);
      else if ('entry' in entry) events.push(entry.entry(`evt_${serving.newId()}`));
      else if (entry.kind !== undefined) {
        writes.push(entry);
        events.push(eventOf(served(entry.table), entry.kind, entry, entry.at, entry.before?.doc));
      }
    }
    const changes = orderChanges(writes, collections).map(({ table, id, expect, next }) => ({
      table,
      id,
      expect,
      next,
    }));
    return { changes: [...changes, ...this.#overlay.expectations(), ...kept], events };
  }

  torn(): RowName | undefined {
    return this.#overlay.torn();
  }

  async #read(collection: string, id: unknown): Promise<string | undefined> {
    this.#countRead();
    const { name } = this.#shared.served(collection).collection;
    if (typeof id !== 'string' || !id.isWellFormed() || id.includes('\0')) return undefined;
    const row = await this.read(name, id);
    return row === undefined || row.deletedAt !== null ? undefined : row.doc;
  }

  #list({ collection, query, largest }: Extract<ResourceCall, { do: 'list' }>): Promise<string> {
    this.#countRead();
    const { principal, serving } = this.#shared;
    const served = this.#shared.served(collection);
    const { queryLimits } = serving;
    const asked = largest === true ? largestPage(query, queryLimits) : query;
    return listPage(served, this.#overlay.store, principal, asked, queryLimits);
  }

  async #write(call: WriteCall, depth: number): Promise<string | undefined> {
    this.#countChange();
    const { runHooks, readable } = this.#shared;
    if (readable?.has(call.collection) === true)
      throw refuse('method_not_allowed', `functions read ${call.collection} and do not write them`);
    const served = this.#shared.served(call.collection);
    const logic =
      served.collection.hooks?.beforeWrite === undefined || runHooks === undefined
        ? undefined
        : new UnitLogic(this, runHooks, depth + 1);
    const within: Served = { ...served, store: this.#overlay.store, logic };
    return writeResource(within, { principal: this.#shared.principal, owner: this.#owner }, call);
  }

  async #emit(call: Extract<ResourceCall, { do: 'emit' }>): Promise<undefined> {
    this.#countChange();
    const { characters, ...emitted } = await this.#shared.emit(call, this.#shared.principal);
    this.#overlay.append(emitted, characters);
  }

  async #mail(mail: unknown): Promise<undefined> {
    this.#countChange();
    const { keepMail } = this.#shared;
    if (keepMail === undefined) throw refuse('unavailable', 'this program sends no mail');
    for (const kept of await keepMail(mail)) this.#overlay.append({ kept }, kept.next?.doc.length ?? 0);
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

/** The writes of a hook run while the write that it belongs to waits for it: each function has a line of its own. */
class LogicScope implements Scope {
  readonly depth: number;
  readonly #carryOut: (call: ResourceCall) => Promise<string | undefined>;
  #last: Promise<unknown> = Promise.resolve();
  #isOver = false;

  constructor(depth: number, carryOut: (call: ResourceCall) => Promise<string | undefined>) {
    this.depth = depth;
    this.#carryOut = carryOut;
  }

  async call(call: ResourceCall): Promise<string | undefined> {
    if (this.#isOver) throw refuse('request_timeout', 'the function that makes this call has ended');
    if (call.do === 'get' || call.do === 'list') return this.#carryOut(call);
    const made = this.#last.then(() => this.#carryOut(call));
    this.#last = made.catch(() => undefined);
    return made;
  }

  async settled(): Promise<void> {
    for (let last: unknown; last !== this.#last; ) {
      last = this.#last;
      await this.#last;
    }
  }

  end(): void {
    this.#isOver = true;
  }
}

function tooMuch(message: string): ResourceRefused {
  return refuse('content_too_large', `one unit of a function that ${message}`);
}
