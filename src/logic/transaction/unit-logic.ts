/**
 * The hooks of writes (resources/collection/served.ts): within the unit of a function that is running, and around the
 * write of a request, which then becomes a unit of what the request and its functions write together.
 */
import type { Problem } from '../../http/problem.ts';
import type { Ask, Result } from '../../kernel/resource.ts';
import { problemOfCommit } from '../../resources/collection/commit.ts';
import type { ProposedWrite, Served, WriteLogic, WrittenByHooks } from '../../resources/collection/served.ts';
import { overtaken } from '../../store/lines.ts';
import { type MaybePromise, Overtaken } from '../../store/store.ts';
import type { OpenTransaction, Transaction } from './resource-call.ts';

/** Runs the hooks of one write. @param depth of their calls */
export type RunHooks = (
  served: Served,
  write: ProposedWrite,
  unit: { readonly transaction: Transaction; readonly depth: number },
) => Promise<WrittenByHooks>;

/** The hooks of writes within the unit of a transaction. */
export class UnitLogic implements WriteLogic {
  readonly #transaction: Transaction;
  readonly #runHooks: RunHooks;
  readonly #depth: number;

  constructor(transaction: Transaction, runHooks: RunHooks, depth: number) {
    this.#transaction = transaction;
    this.#runHooks = runHooks;
    this.#depth = depth;
  }

  inUnit(
    served: Served,
    ask: Ask,
    act: (served: Served, ask: Ask) => MaybePromise<Result>,
  ): MaybePromise<Result> {
    return act(served, ask);
  }

  beforeWrite(served: Served, write: ProposedWrite): Promise<WrittenByHooks> {
    return this.#runHooks(served, write, { transaction: this.#transaction, depth: this.#depth });
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

  async inUnit(
    served: Served,
    ask: Ask,
    act: (served: Served, ask: Ask) => MaybePromise<Result>,
  ): Promise<Result> {
    const transaction = this.#open(ask.principal);
    const logic = new UnitLogic(transaction, this.#runHooks, 1);
    let result: Result;
    try {
      result = await act({ ...served, store: transaction.store, logic }, { ...ask, companions: [] });
    } catch (error) {
      const overtaken = overtakenBy(transaction);
      if (overtaken === undefined) throw error;
      return overtaken;
    }
    if (!('made' in result)) return overtakenBy(transaction) ?? result;
    return commitTransaction(served, ask, transaction, result);
  }

  beforeWrite(): Promise<WrittenByHooks> {
    throw new Error('the hooks of a request run within its unit');
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
  const commit = await served.store.commit({ changes: [...changes, ...companions], events });
  if (commit.outcome === 'committed') return { made, rev: made.rev ?? commit.rev };
  if (commit.outcome === 'superseded') {
    if (commit.change >= changes.length) return { refused: { code: 'idempotency_key_in_use' } };
    return overtaken({ changes, events }, commit);
  }
  const change = changes[commit.change];
  if ('collection' in served && change?.table === served.collection.name)
    return { refused: await problemOfCommit(served, ask, { changes, events }, commit) };
  return { refused: ofAnotherWrite(commit) };
}

/** A refusal, or a failure, may rest on two reads of a row, with a change by another writer between them. */
export function overtakenBy(transaction: Transaction): Overtaken | undefined {
  const row = transaction.overtaken();
  return row === undefined ? undefined : new Overtaken({ table: row.table, id: row.id });
}

/** A refusal of the store that concerns what a function wrote, which the client did not ask for. */
function ofAnotherWrite(commit: { readonly outcome: 'taken' | 'dangling' | 'depended-on' }): Problem {
  const code = {
    taken: 'unique_taken',
    dangling: 'reference_missing',
    'depended-on': 'dependants_exist',
  } as const;
  return { code: code[commit.outcome] };
}
