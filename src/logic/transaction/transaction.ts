/**
 * The transaction of an application's functions (§4.14.5): the operations of the collections themselves, as an
 * administrator, over a store that keeps their writes. Nothing is committed here: the runner of the function commits
 * `unit`, with the response to a request or with the state of a message. Conflicts that only a commit can detect, such
 * as a unique value that is taken, appear then.
 */
import { ResourceRefused } from '../../config/senders.ts';
import type { HeldMemory, RequestMemory } from '../../http/message.ts';
import { workRules } from '../../memory/work-rules.ts';
import { type Cause, systemActor } from '../../model/actor.ts';
import type { Collection } from '../../model/collection.ts';
import { type FileValue, withOpenFiles } from '../../model/file.ts';
import { idFor } from '../../model/id.ts';
import {
  type Authenticated,
  authenticated,
  operatorId,
  type Principal,
  principalIdOf,
} from '../../model/principal.ts';
import { eventOf } from '../../resources/collection/row.ts';
import { servedOf } from '../../resources/collection/serve-collection.ts';
import type { Served, Serving } from '../../resources/collection/served-collection.ts';
import { wholeView } from '../../resources/collection/view.ts';
import { deletedCharactersMaxOf } from '../../store/group-commit.ts';
import {
  type Change,
  type EventEntry,
  MemoryUnavailable,
  type Row,
  type RowName,
  type Store,
  type Unit,
} from '../../store/store.ts';
import { FunctionFailed, refusedLate } from '../function-failed.ts';
import { refusalOfCall, refuseCall } from '../refusal.ts';
import type { Opened } from './calls.ts';
import { largestPage, listPage, type WriteCall, writeResource } from './carry-out.ts';
import {
  CascadeExceeded,
  type CascadeStep,
  collectCascade,
  cycleAt,
  hasCascade,
  isCascaded,
  stillNames,
  withoutNeedless,
} from './cascade.ts';
import { createOverlay, type Emitted, type NetWrite, type Overlay, orderChanges } from './overlay.ts';
import type {
  Enclosing,
  Opening,
  OpenTransaction,
  ResourceCall,
  Scope,
  Transaction,
} from './resource-call.ts';
import { demandOpen, LogicScope, type RunHooks, UnitLogic } from './unit-logic.ts';

/** Posts an event with the unit. @throws ResourceRefused */
export type EmitEvent = (
  call: Extract<ResourceCall, { do: 'emit' }>,
  principal: Authenticated,
) => Promise<Emitted & { readonly characters: number }>;

/** The rows of a mail that is sent after the commit. @param mail a value or its JSON text @throws ResourceRefused */
type KeepMail = (mail: unknown) => Promise<readonly Change[]>;

/** The parts of the program that functions of an application can reach. */
export type FunctionReach = {
  /** The declared collections. */
  readonly collections: ReadonlyMap<string, Collection>;
  /** Built-in collections that functions read and write by further rules: accounts. Default: none. */
  readonly readable?: ReadonlyMap<string, Collection>;
  /** How functions change accounts. */
  readonly accountWrites?: AccountWrites | undefined;
  readonly emit: EmitEvent;
  /** Absent: mail is refused. */
  readonly keepMail?: KeepMail;
};

type Hooks = {
  /** Absent: no collection has hooks. */
  readonly run?: RunHooks;
  /** Hears of a hook that failed in a write of another function, or refused in a decided deletion, which go on. */
  readonly onFailed: (error: FunctionFailed) => void;
};

/** The rules of a function's change of an account (src/accounts/accounts.ts). */
type AccountWrites = {
  /** @param before the row of an account that changes */
  readonly prepare: <C extends Extract<WriteCall, { do: 'create' | 'update' }>>(
    call: C,
    before: Pick<Row, 'doc'> | undefined,
  ) => C;
  /** Refuses what functions may not change, and adds what ends with a change. */
  readonly judge: NonNullable<Served['accompany']>;
  /** What is committed with the changes of one unit. */
  readonly consequences: (
    writes: readonly Pick<NetWrite, 'id' | 'before' | 'next'>[],
    cause: Cause,
  ) => readonly Change[];
};

/** What all transactions share because it takes long to create. */
type Shared = FunctionReach & {
  readonly serving: Serving;
  readonly hooks: Hooks;
  readonly principal: Authenticated;
  readonly served: (name: string) => Served;
};

/** Called once, at start; the schemas of a collection are compiled when a function first names it. */
export function createOpenTransaction(serving: Serving, reach: FunctionReach, hooks: Hooks): OpenTransaction {
  const { collections, readable } = reach;
  const known = new Map<string, Served>();
  const shared: Shared = {
    ...{ ...reach, serving, hooks },
    principal: authenticated({ id: operatorId, scopes: ['read', 'write', 'webhooks', 'admin'] }),
    served(name) {
      const collection = collections.get(name) ?? readable?.get(name);
      if (collection === undefined)
        throw new FunctionFailed(`no collection is named ${JSON.stringify(name)}`);
      // Functions get documents as they are stored, from every call alike.
      const whole = wholeView(collection);
      const accompany = reach.accountWrites?.judge;
      const variant = collections.has(name) || accompany === undefined ? {} : { announced: false, accompany };
      const served = known.get(name) ?? {
        ...servedOf(serving, collection, variant),
        // Functions may give what no client may.
        collection: collection.stamp === undefined ? collection : { ...collection, stamp: undefined },
        view: () => whole,
      };
      known.set(name, served);
      return served;
    },
  };
  return (caller, cause, how) => new LogicTransaction(shared, caller, cause, how);
}

class LogicTransaction implements Transaction {
  readonly caller: Principal;
  readonly #shared: Shared;
  readonly #isUnmarked: boolean;
  readonly #hooks: Opening['hooks'];
  readonly #owner: string | null;
  readonly #cause: Cause;
  readonly #stampedBy: Principal | null;
  readonly #overlay: Overlay;
  /** Ids of accounts that functions wrote, and not the request of their hook, which has its own entries in the audit trail. */
  readonly #accounts = new Set<string>();
  readonly call: Scope['call'];
  readonly collectionOf: Transaction['collectionOf'];
  readonly cascadeMax: number;
  readonly #memory: CallMemory;
  /** Of times relative to the present, in all queries of the function. */
  readonly #now: number;
  #reads = 0;

  constructor(
    shared: Shared,
    caller: Principal | undefined,
    cause: Cause | undefined,
    { memory, isUnmarked = false, hooks }: Opening = {},
  ) {
    this.#shared = shared;
    this.#now = shared.serving.clock();
    this.#hooks = hooks;
    this.#isUnmarked = isUnmarked;
    this.#memory = new CallMemory(memory, shared.serving.settings.pageBytesMax);
    this.#cause = cause ?? { actor: systemActor };
    this.caller = caller ?? shared.principal;
    this.#owner = caller === undefined ? null : principalIdOf(caller);
    this.#stampedBy = caller ?? null;
    this.#overlay = createOverlay(shared.serving.store);
    this.collectionOf = (name) => shared.collections.get(name) ?? shared.readable?.get(name);
    this.cascadeMax = shared.serving.settings.cascadeMax;
    const own = this.scope();
    this.call = (call) => own.call(call);
  }

  get store(): Store {
    return this.#overlay.store;
  }

  scope(enclosing?: Enclosing): Scope {
    return new LogicScope(enclosing, async (call, scope) => {
      await this.#shared.serving.turns.next();
      demandOpen(scope);
      return this.#memory.carryOut(call, (each) => this.#carryOut(each, scope));
    });
  }

  streams(held: HeldMemory): void {
    this.#memory.enter(held);
  }

  async read(table: string, id: string): Promise<Row | undefined> {
    const row: Row | undefined = await this.#overlay.store.read(table, id);
    this.#overlay.lean({ table, id });
    return row;
  }

  async #carryOut(call: ResourceCall, scope: Scope): Promise<string | undefined> {
    try {
      if (call.do === 'get') return await this.#read(call.collection, call.id);
      if (call.do === 'list') return await this.#list(call);
      return await this.#change(call, scope);
    } catch (error) {
      if (!(error instanceof ResourceRefused)) throw error;
      throw refusalOfCall(error, 'collection' in call ? call.collection : call.do);
    }
  }

  /** What a call that fails has written, by its hooks too, is undone: the function may catch the error and go on. */
  async #change(call: ChangeCall, scope: Scope): Promise<string | undefined> {
    this.#countChange();
    const savepoint = this.#overlay.savepoint();
    try {
      const text = await this.#make(call, scope);
      if (scope.isOpen) savepoint.release();
      return text;
    } catch (error) {
      // Otherwise the call that the function runs within has failed, and undone this too.
      if (scope.isOpen) savepoint.undo();
      // The call failed by what it read, and the function may go on by that.
      if ('id' in call && typeof call.id === 'string')
        this.#overlay.lean({ table: call.collection, id: call.id });
      throw error;
    }
  }

  async #make(call: ChangeCall, scope: Scope): Promise<string | undefined> {
    if (call.do === 'emit') return this.#emit(call, scope);
    if (call.do === 'mail') return this.#mail(call.mail, scope);
    return this.#write(call, scope);
  }

  async cascade(...[named, scope, isDoomed]: Parameters<Transaction['cascade']>): Promise<boolean> {
    const { serving } = this.#shared;
    const limits = serving.settings;
    const cascadeBytesMax = Math.min(limits.cascadeBytesMax, deletedCharactersMaxOf(this.store));
    const walk = { store: this.store, turns: serving.turns, collectionOf: this.collectionOf, isDoomed };
    const found = await collectCascade(walk, named, { cascadeMax: limits.cascadeMax, cascadeBytesMax });
    if (found.outcome === 'cycle') throw cycleAt(found.at);
    const { steps, isWhole } = found;
    if (!isWhole && (isDoomed === undefined || steps.length === 0))
      throw new CascadeExceeded(this.cascadeMax);
    await this.follow(withoutNeedless(steps, named), named, scope);
    return isWhole;
  }

  async follow(steps: readonly CascadeStep[], named: readonly RowName[], scope?: Scope): Promise<void> {
    const [writing] = named;
    if (writing === undefined) return;
    const own = this.scope({ scope, writing });
    try {
      for (const { table, id, without, by } of steps) {
        await this.#shared.serving.turns.next();
        const found = await this.store.read(table, id);
        // Another request deleted it, or changed its reference, since the walk.
        if (found === undefined || found.deletedAt !== null || !stillNames(found.doc, by)) continue;
        const row = { collection: table, id };
        const call =
          without === undefined
            ? ({ do: 'delete', ...row } as const)
            : ({ do: 'update', ...row, patch: { [without]: null } } as const);
        await this.#followBy(call, own);
      }
    } finally {
      own.end();
    }
  }

  async #followBy(call: WriteCall, scope: Scope): Promise<void> {
    if (this.#hooks !== 'judged') return void (await this.#write(call, scope, this.#hooks ?? 'alone'));
    const savepoint = this.#overlay.savepoint();
    try {
      await this.#write(call, scope, 'alone');
      savepoint.release();
    } catch (error) {
      savepoint.undo();
      const isOfHook = error instanceof ResourceRefused || error instanceof FunctionFailed;
      if (!isOfHook || this.torn() !== undefined) throw error;
      await this.#write(call, scope, 'unasked');
      // A failure was reported where it happened.
      if (error instanceof FunctionFailed) return;
      this.#shared.hooks.onFailed(refusedLate(`the hook beforeWrite of ${call.collection} refuses`, error));
    }
  }

  follows(table: string, reference: { readonly table: string; readonly field: string }): boolean {
    return isCascaded(this.collectionOf(table), reference.table, reference.field);
  }

  openFile(file: FileValue): AsyncIterable<Uint8Array> {
    const { files } = this.#shared.serving;
    if (files === undefined) throw new FunctionFailed('no collection has files');
    return files.open(file);
  }

  readonly opened: Opened = (collection, document) =>
    withOpenFiles(document, this.collectionOf(collection)?.files, (file) => this.openFile(file));

  unit(): Unit {
    const { collections, readable = noCollections, served, serving, accountWrites } = this.#shared;
    const entries = this.#overlay.writes();
    const writes: NetWrite[] = [];
    const kept: Change[] = [];
    const events: EventEntry[] = [];
    for (const entry of entries) {
      if ('kept' in entry) kept.push(entry.kept);
      else if ('entry' in entry) events.push(entry.entry(idFor('event', serving.newId)));
      else if (entry.kind !== undefined) {
        writes.push(entry);
        if (entry.isSilent) continue;
        const of = { id: entry.id, row: entry, formerOwner: entry.before?.owner };
        events.push(eventOf(served(entry.table), entry.kind, of, entry.at, entry.before?.doc));
      }
    }
    const ordered = orderChanges(writes, new Map([...collections, ...readable]));
    const changes = ordered.map(({ table, id, expect, next }) => ({
      table,
      id,
      expect,
      next,
    }));
    const ofAccounts = writes.filter(({ table, id }) => readable.has(table) && this.#accounts.has(id));
    const further = accountWrites?.consequences(ofAccounts, this.#cause) ?? [];
    return { changes: [...changes, ...this.#overlay.expectations(), ...kept, ...further], events };
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
    const asked = largest === true ? largestPage(query, serving.settings) : query;
    return listPage(served, this.#overlay, { principal, now: this.#now }, asked);
  }

  /** @param how `alone`: what depends on the document is deleted already; `unasked`: and its hook does not run */
  async #write(wanted: WriteCall, scope: Scope, how?: 'alone' | 'unasked'): Promise<string | undefined> {
    const { hooks, readable } = this.#shared;
    const isAccount = readable?.has(wanted.collection) === true;
    const call = isAccount ? await this.#ofAccount(wanted) : wanted;
    if (call.id !== undefined && scope.isWriting({ table: call.collection, id: call.id })) {
      const what = `the document ${JSON.stringify(call.id)} of ${call.collection}`;
      throw new FunctionFailed(
        `the write of ${what} is under way: its hook changes \`after\`, and neither it nor what it calls writes the document`,
      );
    }
    const served = this.#shared.served(call.collection);
    const { collection } = served;
    const cascades = how === undefined;
    const isFollowed = cascades && hasCascade(collection);
    const hasHooks =
      how !== 'unasked' && collection.hooks?.beforeWrite !== undefined && hooks.run !== undefined;
    const logic =
      isFollowed || hasHooks
        ? new UnitLogic({ transaction: () => this, scope, cascades }, hooks.run, hooks.onFailed)
        : undefined;
    const store: Store = {
      ...this.#overlay.store,
      commit: async (unit) => {
        demandOpen(scope);
        return this.#overlay.store.commit(unit);
      },
    };
    const within: Served = {
      ...{ ...served, store, logic, caller: this.#stampedBy, isUnmarked: this.#isUnmarked },
      // An account owns itself.
      ...(isAccount && call.do === 'create' ? { newId: () => call.owner ?? '' } : {}),
    };
    return writeResource(within, { principal: this.#shared.principal, owner: this.#owner }, call);
  }

  async #ofAccount(call: WriteCall): Promise<WriteCall> {
    const { accountWrites, serving } = this.#shared;
    if (accountWrites === undefined || call.do === 'replace' || call.do === 'delete')
      throw new FunctionFailed(
        `functions create and update ${call.collection}, and neither replace nor delete them`,
      );
    const id = call.do === 'update' ? String(call.id) : idFor('account', serving.newId);
    this.#accounts.add(id);
    if (call.do === 'update') return accountWrites.prepare(call, await this.read(call.collection, id));
    return { ...accountWrites.prepare(call, undefined), id: undefined, owner: id };
  }

  async #emit(call: Extract<ResourceCall, { do: 'emit' }>, scope: Scope): Promise<undefined> {
    const { characters, ...emitted } = await this.#shared.emit(call, this.#shared.principal);
    demandOpen(scope);
    this.#overlay.append(emitted, characters);
  }

  async #mail(mail: unknown, scope: Scope): Promise<undefined> {
    const { keepMail } = this.#shared;
    if (keepMail === undefined) throw refuseCall('unavailable', 'this program sends no mail');
    const rows = await keepMail(mail);
    demandOpen(scope);
    for (const kept of rows) this.#overlay.append({ kept }, kept.next?.doc.length ?? 0);
  }

  #countRead(): void {
    this.#reads += 1;
    const { handlerReadsMax } = this.#shared.serving.settings;
    if (this.#reads > handlerReadsMax)
      throw tooMuch(`reads more than ${handlerReadsMax} times (COMITY_HANDLER_READS_MAX)`);
  }

  #countChange(): void {
    const { handlerChangesMax } = this.#shared.serving.settings;
    if (this.#overlay.size() >= handlerChangesMax)
      throw tooMuch(`makes more than ${handlerChangesMax} changes (COMITY_HANDLER_CHANGES_MAX)`);
    const { unitCharactersMax } = this.#shared.serving.store;
    if (this.#overlay.characters() > unitCharactersMax)
      throw tooMuch(`writes more than ${unitCharactersMax} characters (COMITY_UNITS_WAITING_BYTES_MAX)`);
  }
}

const noCollections: ReadonlyMap<string, Collection> = new Map();

type ChangeCall = Exclude<ResourceCall, { do: 'get' | 'list' }>;

function tooMuch(message: string): FunctionFailed {
  return new FunctionFailed(`the unit of a function ${message}`);
}

// Memory of what the functions of one transaction read and write (work-rules.ts): counted before a call is carried out, for the caller of
// the request, or for the source of the message. So many functions at once are refused before the memory is used up. The longest page
// counts, because the next usually takes its place. Once the response of an action is a stream, its memory is that of the stream, and it
// waits for room for the largest page before it reads one.

type CarryOut = (call: ResourceCall) => Promise<string | undefined>;

class CallMemory {
  readonly #memory: Pick<RequestMemory, 'hold'> | undefined;
  readonly #pageOctetsMax: number;
  #stream: HeldMemory | undefined;
  /** The octets of the longest page. */
  #kept = 0;

  constructor(memory: Pick<RequestMemory, 'hold'> | undefined, pageBytesMax: number) {
    this.#memory = memory;
    this.#pageOctetsMax = workRules.pageOctet.octets * pageBytesMax;
  }

  /** The request has its response, and what it held is given back. */
  enter(stream: HeldMemory): void {
    this.#stream = stream;
    stream.set(this.#kept);
  }

  /** @throws MemoryUnavailable if there is no room; a stream waits instead */
  async carryOut(call: ResourceCall, carryOut: CarryOut): Promise<string | undefined> {
    if (call.do === 'get') return carryOut(call);
    if (call.do !== 'list') {
      this.#hold(workRules.change.octets + workRules.bulkOctet.octets * lengthOf(call));
      return carryOut(call);
    }
    const stream = this.#stream;
    // The store bounds the pages that are read at once; a stream whose page is there and waits for memory would hold it uncounted.
    if (stream !== undefined)
      await new Promise<void>((resolve) => stream.whenRoom(this.#pageOctetsMax, resolve));
    try {
      const text = await carryOut(call);
      this.#keep(workRules.pageOctet.octets * (text?.length ?? 0));
      return text;
    } finally {
      stream?.set(this.#kept);
    }
  }

  #keep(octets: number): void {
    if (octets <= this.#kept) return;
    if (this.#stream === undefined) this.#hold(octets - this.#kept);
    this.#kept = octets;
  }

  #hold(octets: number): void {
    if (this.#memory?.hold(octets) !== false) return;
    throw new MemoryUnavailable('the memory budget for functions is used up', { retryAfterSeconds: 1 });
  }
}

function lengthOf(call: ResourceCall): number {
  const text = 'fields' in call ? call.fields : 'patch' in call ? call.patch : undefined;
  return typeof text === 'string' ? text.length : 0;
}
