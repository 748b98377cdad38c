/**
 * The hooks of writes (resources/collection/served.ts): within the unit of a function that is running, and around the
 * write of a request, which then becomes a unit of what the request and its functions write together.
 */
import type { Problem } from '../../http/problem.ts';
import { problems } from '../../http/problem-registry.ts';
import { type Ask, caused, causeOfAsk, type Result } from '../../kernel/resource.ts';
import { problemOfCommit } from '../../resources/collection/commit.ts';
import type { MakeWrites, ProposedWrite, Served, WriteLogic } from '../../resources/collection/served.ts';
import type { FieldsOrWritten } from '../../resources/document/representation.ts';
import { overtaken } from '../../store/lines.ts';
import { type MaybePromise, Overtaken, type RowName, StoreUnavailable } from '../../store/store.ts';
import { whenKnown } from '../../store/when-known.ts';
import { FunctionFailed } from '../function-failed.ts';
import { problemOrFailure } from '../function-run.ts';
import { CascadeExceeded, hasCascade } from './cascade.ts';
import type { OpenTransaction, Scope, Transaction } from './resource-call.ts';

/** The unit that a hook runs in. */
export type HookUnit = {
  /** Opened with the first call of a hook: most hooks only look at their own document. */
  readonly transaction: () => Transaction;
  /** Of the function whose write it is; undefined: a request's. */
  readonly scope: Scope | undefined;
  /** False: what depends on a deleted document is deleted already. */
  readonly cascades: boolean;
};

/** Of a hook of a write of this function. */
export function depthWithin(scope: Scope | undefined): number {
  return (scope?.depth ?? 0) + 1;
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

  constructor(open: OpenTransaction, runHooks: RunHooks) {
    this.#open = open;
    this.#runHooks = runHooks;
  }

  write(served: Served, ask: Ask, writes: readonly ProposedWrite[], make: MakeWrites): MaybePromise<Result> {
    let opened: Transaction | undefined;
    const transaction = (): Transaction => {
      opened ??= this.#open(ask.principal, causeOfAsk(ask));
      return opened;
    };
    const unit = { transaction, scope: undefined, cascades: true };
    const running = runAll(this.#runHooks, served, ask, writes, unit);
    const named = namedBy(served, writes);
    const finish = (outcome: HooksOutcome): MaybePromise<Result> => {
      if ('refused' in outcome) return outcome;
      if (opened === undefined) return make(served, ask, outcome.fields);
      return makeWithin(served, ask, opened, (within, own) => make(within, own, outcome.fields));
    };
    if (named.length > 0) {
      return unlessTorn(
        () => opened,
        async () => {
          const outcome = await running;
          if ('refused' in outcome) return outcome;
          const ended = await this.#cascade(served, ask, named, transaction);
          return ended ?? finish(outcome);
        },
      );
    }
    if (!(running instanceof Promise)) return finish(running);
    return unlessTorn(
      () => opened,
      async () => finish(await running),
    );
  }

  /**
   * Deletes what depends on the documents, within the unit of the request. If that is more than a unit takes, the request
   * becomes an operation, which first deletes the dependants in units of their own.
   * @returns the result of the request, if that is known now
   */
  async #cascade(
    served: Served,
    ask: Ask,
    named: readonly RowName[],
    transaction: () => Transaction,
  ): Promise<Result | undefined> {
    try {
      await transaction().cascade(named, undefined);
      return undefined;
    } catch (error) {
      if (!(error instanceof CascadeExceeded))
        return {
          refused: problemOrFailure(error, `the deletion of what depends on ${served.collection.name}`),
        };
    }
    return ask.companions.length === 0 ? { postponed: true } : this.#deleteDependants(served, ask, named);
  }

  /** Ends with `Overtaken`: the request then finds few enough of them for its own unit. */
  async #deleteDependants(served: Served, ask: Ask, named: readonly RowName[]): Promise<Result> {
    const [first] = named;
    if (first === undefined) throw new Error('a cascade requires a deleted document');
    for (let isWhole = false; !isWhole; ) {
      const part = this.#open(ask.principal, causeOfAsk(ask));
      try {
        isWhole = await part.cascade(named, undefined, true);
      } catch (error) {
        if (error instanceof CascadeExceeded)
          return { refused: { code: 'dependants_exist', message: error.message } };
        // Another request deleted one of them between two reads: the next part looks again.
        if (!(error instanceof StoreUnavailable) && part.torn() !== undefined) continue;
        return {
          refused: problemOrFailure(error, `the deletion of what depends on ${served.collection.name}`),
        };
      }
      const { changes, events } = part.unit();
      if (changes.length === 0) break;
      const commit = await served.store.commit({ changes, events });
      if (commit.outcome === 'taken' || commit.outcome === 'dangling')
        return { refused: ofAnotherWrite(commit, changes[commit.change]?.table) };
      // What another change came before is looked at again: by the next part, or by the request itself.
    }
    return new Overtaken(first);
  }
}

/** The deleted documents, if others may follow them. */
function namedBy({ collection }: Served, writes: readonly ProposedWrite[]): readonly RowName[] {
  if (!hasCascade(collection)) return [];
  return writes.flatMap(({ action, id }) => (action === 'delete' ? [{ table: collection.name, id }] : []));
}

/** Commits what `make` commits together with what the functions of the transaction wrote. */
async function makeWithin(
  served: Served,
  ask: Ask,
  transaction: Transaction,
  make: (served: Served, ask: Ask) => MaybePromise<Result>,
): Promise<Result> {
  const within: Served = { ...served, store: transaction.store, logic: undefined };
  const result = await make(within, { ...ask, companions: [] });
  return 'made' in result ? commitTransaction(served, ask, transaction, result) : result;
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

/** A refusal of the store that concerns what a function wrote, which the client did not ask for. */
function ofAnotherWrite(
  commit: { readonly outcome: 'taken' | 'dangling' | 'depended-on' },
  table = 'a function',
): Problem {
  const code = {
    taken: 'unique_taken',
    dangling: 'reference_missing',
    'depended-on': 'dependants_exist',
  } as const;
  const refused = code[commit.outcome];
  return { code: refused, message: `${table}: ${problems[refused].message}` };
}
