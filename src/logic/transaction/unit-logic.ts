/**
 * The hooks of writes (resources/collection/served.ts): within the unit of a function that is running, and around the
 * write of a request, which then becomes a unit of what the request and its functions write together.
 */
import type { Problem } from '../../http/problem.ts';
import { problems } from '../../http/problem-registry.ts';
import type { Ask, Result } from '../../kernel/resource.ts';
import { problemOfCommit } from '../../resources/collection/commit.ts';
import type { MakeWrites, ProposedWrite, Served, WriteLogic } from '../../resources/collection/served.ts';
import type { FieldsOrWritten } from '../../resources/document/representation.ts';
import { overtaken } from '../../store/lines.ts';
import { type MaybePromise, Overtaken, StoreUnavailable } from '../../store/store.ts';
import { whenKnown } from '../../store/when-known.ts';
import { FunctionFailed } from '../function-failed.ts';
import type { OpenTransaction, Scope, Transaction } from './resource-call.ts';

/** The unit that a hook runs in. */
export type HookUnit = {
  /** Opened with the first call of a hook: most hooks only look at their own document. */
  readonly transaction: () => Transaction;
  /** Of the function whose write it is; undefined: a request's. */
  readonly scope: Scope | undefined;
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
  readonly #runHooks: RunHooks;
  readonly #unit: HookUnit;
  readonly #onFailed: (error: FunctionFailed) => void;

  constructor(unit: HookUnit, runHooks: RunHooks, onFailed: (error: FunctionFailed) => void) {
    this.#runHooks = runHooks;
    this.#unit = unit;
    this.#onFailed = onFailed;
  }

  async write(served: Served, ask: Ask, writes: readonly ProposedWrite[], make: MakeWrites): Promise<Result> {
    const outcome = await this.#run(served, ask, writes);
    return 'refused' in outcome ? outcome : make(served, ask, outcome.fields);
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
      opened ??= this.#open(ask.principal);
      return opened;
    };
    const running = runAll(this.#runHooks, served, ask, writes, { transaction, scope: undefined });
    const finish = (outcome: HooksOutcome): MaybePromise<Result> => {
      if ('refused' in outcome) return outcome;
      if (opened === undefined) return make(served, ask, outcome.fields);
      return makeWithin(served, ask, opened, (within, own) => make(within, own, outcome.fields));
    };
    if (!(running instanceof Promise)) return finish(running);
    return unlessTorn(
      () => opened,
      async () => finish(await running),
    );
  }
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
  runHooks: RunHooks,
  served: Served,
  ask: Ask,
  writes: readonly ProposedWrite[],
  unit: HookUnit,
): MaybePromise<HooksOutcome> {
  const [first] = writes;
  if (first === undefined) return { fields: [] };
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
    const outcome = await runHooks(served, ask, write, unit);
    if ('refused' in outcome) return outcome;
    fields.push(outcome.fields);
  }
  return { fields };
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
  const { changes, events } = transaction.unit();
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
