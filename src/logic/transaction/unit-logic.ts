/**
 * The hooks of writes (resources/collection/served-collection.ts): within the unit of a function that is running, and around the
 * write of a request, which then becomes a unit of what the request and its functions write together.
 */
import type { Problem } from '../../http/problem.ts';
import { isMark, markId, readMarks, removalOf } from '../../kernel/operations/deletion-marks.ts';
import { type Ask, caused, causeOfAsk, type Result } from '../../kernel/resource.ts';
import { problemOfCommit } from '../../resources/collection/commit.ts';
import type {
  MakeWrites,
  ProposedWrite,
  Served,
  WriteLogic,
} from '../../resources/collection/served-collection.ts';
import type { FieldsOrWritten } from '../../resources/document/representation.ts';
import { overtaken } from '../../store/lines.ts';
import {
  type MaybePromise,
  Overtaken,
  type RowName,
  StoreUnavailable,
  whenKnown,
} from '../../store/store.ts';
import { FunctionFailed, refusedLate } from '../function-failed.ts';
import { problemOrFailure } from '../function-run.ts';
import { ofAnotherWrite, refuseCall } from '../refusal.ts';
import { CascadeExceeded, hasCascade } from './cascade.ts';
import { type LongDeletion, stepDeletion } from './long-deletion.ts';
import type {
  Enclosing,
  Opening,
  OpenTransaction,
  ResourceCall,
  Scope,
  Transaction,
} from './resource-call.ts';

/** The unit that a hook runs in. */
export type HookUnit = {
  /** Opened with the first call of a hook: most hooks only look at their own document. */
  readonly transaction: () => Transaction;
  /** The scope of the function whose write it is; undefined: a request's. */
  readonly scope: Scope | undefined;
  /** False: what depends on a deleted document is deleted already. */
  readonly cascades: boolean;
};

/** The depth of a hook of a write of this function. */
export function depthWithin(scope: Scope | undefined): number {
  return (scope?.depth ?? 0) + 1;
}

/** The writes of a hook run while the write that it belongs to waits for it: each function has a line of its own. */
export class LogicScope implements Scope {
  readonly depth: number;
  readonly #enclosing: Enclosing | undefined;
  readonly #carryOut: (call: ResourceCall, scope: Scope) => Promise<string | undefined>;
  #last: Promise<unknown> = Promise.resolve();
  #isOver = false;

  constructor(
    enclosing: Enclosing | undefined,
    carryOut: (call: ResourceCall, scope: Scope) => Promise<string | undefined>,
  ) {
    this.depth = enclosing === undefined ? 0 : depthWithin(enclosing.scope);
    this.#enclosing = enclosing;
    this.#carryOut = carryOut;
  }

  get isOpen(): boolean {
    return !this.#isOver && this.#enclosing?.scope?.isOpen !== false;
  }

  isWriting(row: RowName): boolean {
    if (this.#enclosing === undefined) return false;
    const { scope, writing } = this.#enclosing;
    return (writing.table === row.table && writing.id === row.id) || scope?.isWriting(row) === true;
  }

  async call(call: ResourceCall): Promise<string | undefined> {
    if (call.do === 'get' || call.do === 'list') return this.#carryOut(call, this);
    const made = this.#last.then(() => this.#carryOut(call, this));
    this.#last = made.catch(() => undefined);
    return made;
  }

  end(): void {
    this.#isOver = true;
  }
}

/** @throws ResourceRefused */
export function demandOpen({ isOpen }: Scope): void {
  if (!isOpen) throw refuseCall('request_timeout', 'the function that makes this call has ended');
}

export type HookOutcome = { readonly fields: FieldsOrWritten } | { readonly refused: Problem };

/** Runs the hooks of one write. */
export type RunHooks = (
  served: Served,
  ask: Ask,
  write: ProposedWrite,
  unit: HookUnit,
) => MaybePromise<HookOutcome>;

/** The hooks of writes within the unit of a transaction. */
export class UnitLogic implements WriteLogic {
  readonly #runHooks: RunHooks | undefined;
  readonly #unit: HookUnit;
  readonly #onFailed: (error: FunctionFailed) => void;

  constructor(unit: HookUnit, runHooks: RunHooks | undefined, onFailed: (error: FunctionFailed) => void) {
    this.#runHooks = runHooks;
    this.#unit = unit;
    this.#onFailed = onFailed;
  }

  async write(served: Served, ask: Ask, writes: readonly ProposedWrite[], make: MakeWrites): Promise<Result> {
    const outcome = await this.#run(served, ask, writes);
    if ('refused' in outcome) return outcome;
    const { transaction, scope, cascades } = this.#unit;
    const named = cascades ? namedBy(served, writes) : [];
    if (named.length > 0) {
      try {
        await transaction().cascade(named, scope);
      } catch (error) {
        if (!(error instanceof CascadeExceeded)) throw error;
        return { refused: { code: 'dependants_exist', message: error.message } };
      }
    }
    return make(served, ask, outcome.fields);
  }

  async #run(served: Served, ask: Ask, writes: readonly ProposedWrite[]): Promise<HooksOutcome> {
    try {
      return await runAll(this.#runHooks, served, ask, writes, this.#unit);
    } catch (error) {
      if (error instanceof FunctionFailed) this.#onFailed(error);
      throw error;
    }
  }
}

/** The hooks of the writes of requests. */
export class RequestLogic implements WriteLogic {
  readonly #open: OpenTransaction;
  readonly #runHooks: RunHooks;
  readonly #onFailed: (error: FunctionFailed) => void;

  constructor(open: OpenTransaction, runHooks: RunHooks, onFailed: (error: FunctionFailed) => void) {
    this.#open = open;
    this.#runHooks = runHooks;
    this.#onFailed = onFailed;
  }

  write(served: Served, ask: Ask, writes: readonly ProposedWrite[], make: MakeWrites): MaybePromise<Result> {
    const hasHook = served.collection.hooks?.beforeWrite !== undefined;
    if (ask.operation?.state !== 'decided' || !hasHook)
      return this.#write(served, ask, writes, make, this.#runHooks);
    return this.#writeDecided(served, ask, writes, make);
  }

  /** Deletes the named documents of a decided long deletion. If a hook or what it writes is refused, it deletes them without hooks (long-deletion.ts). */
  async #writeDecided(...[served, ask, writes, make]: Parameters<WriteLogic['write']>): Promise<Result> {
    let failure: FunctionFailed;
    try {
      const result = await this.#write(served, ask, writes, make, this.#runHooks);
      if (!('refused' in result)) return result;
      failure = refusedLate(`the hook beforeWrite of ${served.collection.name} refuses`, result.refused);
    } catch (error) {
      if (!(error instanceof FunctionFailed)) throw error;
      failure = error;
    }
    const result = await this.#write(served, ask, writes, make, undefined);
    if ('made' in result) this.#onFailed(failure);
    return result;
  }

  #write(
    served: Served,
    ask: Ask,
    writes: readonly ProposedWrite[],
    make: MakeWrites,
    runHooks: RunHooks | undefined,
  ): MaybePromise<Result> {
    let opened: Transaction | undefined;
    const isDecided = ask.operation?.state === 'decided';
    const { memory } = ask.request;
    const by = (how: Opening): Transaction => this.#open(ask.principal, causeOfAsk(ask), { memory, ...how });
    const transaction = (): Transaction => {
      opened ??= by({ isUnmarked: isDecided, ...(isDecided ? { hooks: 'judged' } : {}) });
      return opened;
    };
    const unit = { transaction, scope: undefined, cascades: true };
    const running = runAll(runHooks, served, ask, writes, unit);
    const [first, ...others] = namedBy(served, writes);
    const finish = (outcome: HooksOutcome, by = ask): MaybePromise<Result> => {
      if ('refused' in outcome) return outcome;
      if (opened === undefined) return make(served, by, outcome.fields);
      return makeWithin(served, by, opened, (within, own) => make(within, own, outcome.fields));
    };
    if (first !== undefined) {
      return unlessTorn(
        () => opened,
        async () => {
          const outcome = await running;
          if ('refused' in outcome) return outcome;
          const deletion: Deletion = {
            ...{ served, ask, named: [first, ...others] },
            open: (hooks) => by({ isUnmarked: true, ...(hooks === undefined ? {} : { hooks }) }),
            onRefused: (problem) => {
              const what = `what hooks write while what depends on ${served.collection.name} is deleted is refused`;
              this.#onFailed(refusedLate(what, problem));
            },
            rehearse: (within) =>
              makeWithin(
                { ...served, isUnmarked: true },
                ask,
                within,
                (to, own) => make(to, own, outcome.fields),
                true,
              ),
          };
          const ended = await cascade(deletion, transaction);
          return 'principal' in ended ? finish(outcome, ended) : ended;
        },
      );
    }
    if (!(running instanceof Promise)) return finish(running);
    return unlessTorn(
      () => opened,
      async () => finish(await running),
    );
  }
}

type Deletion = Omit<LongDeletion, 'operation'>;

/**
 * Deletes what depends on the documents, within the unit of the request. If that is more than a unit takes, the request becomes an operation,
 * which first deletes the dependants in units of their own (long-deletion.ts).
 * @returns the request whose unit can be made, or its result
 */
async function cascade(deletion: Deletion, transaction: () => Transaction): Promise<Result | Ask> {
  const { ask, served, named } = deletion;
  const { operation } = ask;
  const isLong = operation?.state !== undefined;
  if (isLong) {
    const ended = await stepDeletion({ ...deletion, operation });
    if (ended !== undefined) return ended;
  }
  try {
    await transaction().cascade(named, undefined);
  } catch (error) {
    if (!(error instanceof CascadeExceeded))
      return {
        refused: problemOrFailure(error, `the deletion of what depends on ${served.collection.name}`),
      };
    if (isLong) return new Overtaken(named[0]);
    if (operation === undefined) return { postponed: true };
    return (await stepDeletion({ ...deletion, operation })) ?? new Overtaken(named[0]);
  }
  if (!isLong) return ask;
  // The last marks go with the unit of the request.
  const marks = await readMarks(served.store, [operation.id, ...named.map(markId)]);
  const removals = [...marks.values()].map((mark) => () => removalOf(mark));
  return { ...ask, companions: [...ask.companions, ...removals] };
}

/** The deleted documents, if others may follow them. */
function namedBy({ collection }: Served, writes: readonly ProposedWrite[]): readonly RowName[] {
  if (!hasCascade(collection)) return [];
  return writes.flatMap(({ action, id }) => (action === 'delete' ? [{ table: collection.name, id }] : []));
}

/**
 * Commits what `make` commits together with what the functions of the transaction wrote.
 * @param isRehearsal commits nothing
 */
async function makeWithin(
  served: Served,
  ask: Ask,
  transaction: Transaction,
  make: (served: Served, ask: Ask) => MaybePromise<Result>,
  isRehearsal = false,
): Promise<Result> {
  const within: Served = { ...served, store: transaction.store, logic: undefined };
  const result = await make(within, { ...ask, companions: [] });
  return 'made' in result && !isRehearsal ? commitTransaction(served, ask, transaction, result) : result;
}

type HooksOutcome = { readonly fields: readonly FieldsOrWritten[] } | { readonly refused: Problem };

function runAll(
  runHooks: RunHooks | undefined,
  served: Served,
  ask: Ask,
  writes: readonly ProposedWrite[],
  unit: HookUnit,
): MaybePromise<HooksOutcome> {
  const [first] = writes;
  if (first === undefined) return { fields: [] };
  if (runHooks === undefined) return { fields: writes.map(({ fields }) => fields ?? {}) };
  if (writes.length > 1) return runInTurn(runHooks, served, ask, writes, unit);
  return whenKnown(runHooks(served, ask, first, unit), (outcome) =>
    'refused' in outcome ? outcome : { fields: [outcome.fields] },
  );
}

async function runInTurn(
  runHooks: RunHooks,
  served: Served,
  ask: Ask,
  writes: readonly ProposedWrite[],
  unit: HookUnit,
): Promise<HooksOutcome> {
  const fields: FieldsOrWritten[] = [];
  for (const write of writes) {
    await served.turns.next();
    const outcome = await runHooks(served, ask, write, unit);
    if ('refused' in outcome) return { refused: placed(outcome.refused, served.placeOf?.(write.id) ?? '') };
    fields.push(outcome.fields);
  }
  return { fields };
}

/** A refusal of one of several writes, with the place of its resource in the content. */
function placed(refused: Problem, place: string): Problem {
  if (place === '') return refused;
  const { errors = [{ pointer: '', message: refused.message ?? 'was refused' }] } = refused;
  return {
    ...refused,
    errors: errors.map(({ pointer, message }) => ({ pointer: place + pointer, message })),
  };
}

/**
 * Runs functions. If they refuse, or fail, after they saw a row in two states, they run again: another writer came in
 * between.
 */
export async function unlessTorn(
  transaction: () => Transaction | undefined,
  run: () => MaybePromise<Result>,
): Promise<Result> {
  try {
    const result = await run();
    const torn = 'refused' in result ? transaction()?.torn() : undefined;
    return torn === undefined ? result : new Overtaken(torn);
  } catch (error) {
    const torn = error instanceof StoreUnavailable ? undefined : transaction()?.torn();
    if (torn === undefined) throw error;
    return new Overtaken(torn);
  }
}

/**
 * Commits what the functions of a request wrote, with the companions of the request.
 * @param served the collection that the request writes, or only the store if the request is an action
 */
export async function commitTransaction(
  served: Served | Pick<Served, 'store' | 'clock'>,
  ask: Ask,
  transaction: Transaction,
  { made, rev }: Extract<Result, { readonly made: unknown }>,
): Promise<Result> {
  const unit = transaction.unit();
  const { changes } = unit;
  const events = caused(unit.events, ask);
  const companions = ask.companions.map((companion) => companion(made));
  if (changes.length === 0 && events.length === 0 && companions.length === 0) return { made, rev };
  const busy = ask.hasTurn === true ? undefined : changes.find((change) => served.store.lines.isBusy(change));
  // Those in the line have run their functions already: the newest would overtake the first of them again and again.
  if (busy !== undefined) return new Overtaken(busy);
  const commit = await served.store.commit({ changes: [...changes, ...companions], events });
  if (commit.outcome === 'committed') return { made, rev: made.rev ?? commit.rev };
  if (commit.outcome === 'superseded') {
    if (commit.change >= changes.length) return { refused: { code: 'idempotency_key_in_use' } };
    const mark = changes[commit.change];
    if (mark !== undefined && isMark(mark)) return { refused: { code: 'deletion_running' } };
    return overtaken({ changes, events }, commit);
  }
  const change = changes[commit.change];
  // A document that refers to it was created meanwhile.
  if (commit.outcome === 'depended-on' && change !== undefined && transaction.follows(change.table, commit))
    return new Overtaken(change);
  if ('collection' in served && change?.table === served.collection.name)
    return { refused: await problemOfCommit(served, ask, { changes, events }, commit) };
  return { refused: ofAnotherWrite(commit, change?.table) };
}
