/**
 * Runs `beforeWrite` of a collection (model/logic/hooks.ts) within the unit of a write. What the hook leaves in `after`
 * is validated like content, and a document that does not fit is a fault of the hook: nothing is written.
 */

import type { Problem } from '../../http/problem.ts';
import { toRulePrincipal } from '../../model/access-function.ts';
import type { Write } from '../../model/logic/hooks.ts';
import type { Principal } from '../../model/principal.ts';
import type { ProposedWrite, Served } from '../../resources/collection/served.ts';
import { proposeCreate } from '../../resources/document/propose.ts';
import { WrittenFields } from '../../resources/document/representation.ts';
import { StoreUnavailable } from '../../store/store.ts';
import { problemThrown, refuse } from '../refusal.ts';
import { refuse as refuseCall } from '../transaction/asking.ts';
import { type Calls, callsOver } from '../transaction/calls.ts';
import type { ResourceCall, Scope } from '../transaction/resource-call.ts';
import type { HookOutcome, HookUnit, RunHooks } from '../transaction/unit-logic.ts';

export type HookOptions = {
  readonly clock: () => number;
  readonly hookTimeoutMs: number;
  readonly hookDepthMax: number;
};

/** A function of the application did not do what it must: the response is a 500, and the log has the cause. */
export class FunctionFailed extends Error {
  override readonly name = 'FunctionFailed';
  /** Of the response, for callers in the same process. */
  readonly status = 500;
  readonly code = 'internal';
}

export function createRunHooks(options: HookOptions): RunHooks {
  return (served, ask, write, unit) => {
    const hook = served.collection.hooks?.beforeWrite;
    if (hook === undefined) return { fields: write.fields ?? {} };
    const named = `the hook beforeWrite of ${served.collection.name}`;
    if (unit.depth > options.hookDepthMax) {
      const message = `${named} is reached by writes of hooks that nest deeper than ${options.hookDepthMax} (COMITY_HOOK_DEPTH_MAX)`;
      throw new FunctionFailed(message);
    }
    const run = new HookRun(write, unit, ask.principal, options.clock());
    let running: void | Promise<void>;
    try {
      running = hook(run.given);
    } catch (error) {
      run.end();
      return { refused: problemOrFailure(error, named) };
    }
    if (running instanceof Promise || run.hasCalled)
      return finish(served, write, run, { running, ms: options.hookTimeoutMs, named });
    run.end();
    return written(served, write, run.changed, named);
  };
}

async function finish(
  served: Served,
  write: ProposedWrite,
  run: HookRun,
  { running, ms, named }: { readonly running: unknown; readonly ms: number; readonly named: string },
): Promise<HookOutcome> {
  try {
    await withinTime(Promise.resolve(running), ms, named, 'COMITY_HOOK_TIMEOUT_MS');
    await run.settled();
  } catch (error) {
    return { refused: problemOrFailure(error, named) };
  } finally {
    run.end();
  }
  return written(served, write, run.changed, named);
}

/** One run of a hook. */
class HookRun {
  readonly given: Write<never, never>;
  readonly #unit: HookUnit;
  #scope: Scope | undefined;
  #after: unknown;
  #isOver = false;

  constructor(write: ProposedWrite, unit: HookUnit, caller: Principal, now: number) {
    this.#unit = unit;
    const given = this.#givenOf(write, unit.depth > 1 ? undefined : caller, now);
    // The types of the fields are known where the hook is declared.
    this.given = given as unknown as Write<never, never>;
  }

  /** Undefined: the hook has not looked at the fields. */
  get changed(): unknown {
    return this.#after;
  }

  get hasCalled(): boolean {
    return this.#scope !== undefined;
  }

  async settled(): Promise<void> {
    await this.#scope?.settled();
  }

  end(): void {
    this.#isOver = true;
    this.#scope?.end();
  }

  async #call(call: ResourceCall): Promise<string | undefined> {
    if (this.#isOver) throw refuseCall('request_timeout', 'the hook that makes this call has ended');
    const { transaction, depth } = this.#unit;
    this.#scope ??= transaction().scope(depth);
    return this.#scope.call(call);
  }

  /**
   * Most hooks read a part of what they get, so each member is made when it is read; the members are the object's own, so
   * that a hook may spread them.
   */
  #givenOf(write: ProposedWrite, caller: Principal | undefined, now: number): object {
    const run = this;
    let before: unknown;
    let calls: Calls | undefined;
    const called = (): Calls => {
      calls ??= callsOver((call) => run.#call(call));
      return calls;
    };
    return {
      action: write.action,
      id: write.id,
      refuse,
      get before() {
        before ??= write.before === undefined ? undefined : JSON.parse(write.before.doc);
        return before;
      },
      get after() {
        run.#after ??= fieldsOf(write);
        return run.#after;
      },
      get principal() {
        return toRulePrincipal(caller ?? run.#unit.transaction().caller);
      },
      get now() {
        return new Date(now);
      },
      get resources() {
        return called().resources;
      },
      get mail() {
        return called().mail;
      },
      get emit() {
        return called().emit;
      },
    };
  }
}

/** A copy: a unit that is overtaken runs the hook again with the same content. */
function fieldsOf({ fields, before }: ProposedWrite): unknown {
  if (fields instanceof WrittenFields) return JSON.parse(fields.text);
  if (fields !== undefined) return JSON.parse(JSON.stringify(fields));
  const { id: _, createdAt, updatedAt, deletedAt, ...removed } = JSON.parse(before?.doc ?? '{}');
  return removed;
}

function written(served: Served, write: ProposedWrite, after: unknown, named: string): HookOutcome {
  if (after === undefined || write.fields === undefined) return { fields: write.fields ?? {} };
  const proposed = proposeCreate(served.collection, served.validator, after);
  if (proposed.ok) return { fields: proposed.fields };
  const { errors = [], code } = proposed.problem;
  const faults = errors.map(({ pointer, message }) => `${pointer} ${message}`).join('; ');
  throw new FunctionFailed(`${named} left a document that cannot be stored (${code}): ${faults}`);
}

/** @throws FunctionFailed for everything but a refusal; StoreUnavailable */
export function problemOrFailure(error: unknown, named: string): Problem {
  const problem = problemThrown(error);
  if (problem !== undefined) return problem;
  if (error instanceof StoreUnavailable || error instanceof FunctionFailed) throw error;
  throw new FunctionFailed(`${named} failed: ${error instanceof Error ? error.message : String(error)}`, {
    cause: error,
  });
}

/** @throws FunctionFailed when the time is over; the function cannot be stopped, but its calls are refused from then on */
export async function withinTime<T>(
  running: Promise<T>,
  ms: number,
  named: string,
  setting: string,
): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const message = `${named} was not done within ${ms} ms (${setting})`;
    timer = setTimeout(() => reject(new FunctionFailed(message)), ms);
  });
  try {
    return await Promise.race([running, late]);
  } finally {
    clearTimeout(timer);
  }
}
