/**
 * Runs `beforeWrite` of a collection (model/logic/logic.ts) within the unit of a write. What the hook leaves in `after`
 * is validated like content, and a document that does not fit is a fault of the hook: nothing is written.
 */
import { kindOf } from '../../config/inspection.ts';
import type { Settings } from '../../config/settings.ts';
import { type RulePrincipal, toRulePrincipal } from '../../model/access-function.ts';
import { namesUpload, withOpenFiles } from '../../model/file.ts';
import type { Members } from '../../model/json-value.ts';
import type { Write } from '../../model/logic/logic.ts';
import type { Principal } from '../../model/principal.ts';
import { callAs } from '../../observe/running-function.ts';
import type { Tracing } from '../../observe/tracing.ts';
import type { ProposedWrite, Served } from '../../resources/collection/served-collection.ts';
import { proposeCreate } from '../../resources/document/propose.ts';
import { WrittenFields } from '../../resources/document/representation.ts';
import { FunctionFailed } from '../function-failed.ts';
import { FunctionRun, problemOrFailure, ShownRun, showing, type TimeLimit } from '../function-run.ts';
import { refuse, refuseCall } from '../refusal.ts';
import { type Calls, callsOver } from '../transaction/calls.ts';
import type { ResourceCall, Scope } from '../transaction/resource-call.ts';
import { depthWithin, type HookOutcome, type HookUnit, type RunHooks } from '../transaction/unit-logic.ts';

export function createRunHooks(
  clock: () => number,
  { hookTimeoutMs, hookDepthMax }: Pick<Settings, 'hookTimeoutMs' | 'hookDepthMax'>,
  tracing?: Tracing,
): RunHooks {
  const limit = { ms: hookTimeoutMs, setting: 'COMITY_HOOK_TIMEOUT_MS' };
  return (served, ask, write, unit) => {
    const hook = served.collection.hooks?.beforeWrite;
    if (hook === undefined) return { fields: write.fields ?? {} };
    const named = `the hook beforeWrite of ${served.collection.name}`;
    if (depthWithin(unit.scope) > hookDepthMax) {
      const message = `${named} is reached by writes of hooks that nest deeper than ${hookDepthMax}`;
      throw new FunctionFailed(message);
    }
    const run = new HookRun(new FunctionRun(named), served, write, unit, {
      caller: ask.principal,
      now: clock(),
    });
    let running: unknown;
    try {
      running =
        tracing === undefined
          ? callAs(run.run, hook, run.given)
          : tracing.within({ name: named, parent: ask.request.traceparent }, () =>
              callAs(run.run, hook, run.given),
            );
    } catch (error) {
      run.end();
      return { refused: problemOrFailure(error, named) };
    }
    if (running !== undefined || run.run.isCalling) return finish(served, write, run, { running, limit });
    run.end();
    run.run.failIfLate(limit);
    return written(served, write, run.changed, named);
  };
}

async function finish(
  served: Served,
  write: ProposedWrite,
  run: HookRun,
  { running, limit }: { readonly running: unknown; readonly limit: TimeLimit },
): Promise<HookOutcome> {
  const { named } = run.run;
  try {
    const returned = await run.run.settled(running, limit);
    // A hook that returns a document expects it to be stored.
    if (returned !== undefined)
      throw new FunctionFailed(
        `${named} must return nothing, not ${kindOf(returned)}: change \`after\` instead`,
      );
  } catch (error) {
    return { refused: problemOrFailure(error, named) };
  } finally {
    run.end();
  }
  return written(served, write, run.changed, named);
}

/** One run of a hook. Most hooks read a part of what they get, so each member is made when it is read. */
class HookRun extends ShownRun {
  readonly given: Write<never, never>;
  readonly run: FunctionRun;
  readonly refuse = refuse;
  readonly #unit: HookUnit;
  readonly #write: ProposedWrite;
  readonly #served: Served;
  readonly #caller: Principal | undefined;
  readonly #now: number;
  #scope: Scope | undefined;
  #before: unknown;
  #after: unknown;
  #calls: Calls | undefined;

  constructor(
    run: FunctionRun,
    served: Served,
    write: ProposedWrite,
    unit: HookUnit,
    { caller, now }: { readonly caller: Principal; readonly now: number },
  ) {
    super();
    this.run = run;
    this.#unit = unit;
    this.#write = write;
    this.#served = served;
    this.#caller = unit.scope === undefined ? caller : undefined;
    this.#now = now;
    // The types of the fields are known where the hook is declared.
    this.given = shown(this) as unknown as Write<never, never>;
  }

  get action(): ProposedWrite['action'] {
    return this.#write.action;
  }

  get id(): string {
    return this.#write.id;
  }

  get before(): unknown {
    const { before } = this.#write;
    this.#before ??= before === undefined ? undefined : opened(this.#served, JSON.parse(before.doc));
    return this.#before;
  }

  get after(): unknown {
    this.#after ??= opened(this.#served, fieldsOf(this.#write));
    return this.#after;
  }

  set after(_: unknown) {
    throw new TypeError('`after` cannot be set: change its members');
  }

  get principal(): RulePrincipal {
    return toRulePrincipal(this.#caller ?? this.#unit.transaction().caller);
  }

  get now(): Date {
    return new Date(this.#now);
  }

  get resources(): Calls['resources'] {
    return this.#called().resources;
  }

  get emit(): Calls['emit'] {
    return this.#called().emit;
  }

  get mail(): Calls['mail'] {
    return this.#called().mail;
  }

  /** Undefined: the hook has not looked at the fields. */
  get changed(): unknown {
    return this.#after;
  }

  end(): void {
    this.run.end();
    this.#scope?.end();
  }

  #called(): Calls {
    this.#calls ??= callsOver(
      (call) => this.#call(call),
      this.run.watch,
      (collection, document) => this.#unit.transaction().opened(collection, document),
    );
    return this.#calls;
  }

  async #call(call: ResourceCall): Promise<string | undefined> {
    if (this.run.isOver) throw refuseCall('request_timeout', 'the hook that makes this call has ended');
    const { transaction, scope } = this.#unit;
    this.#scope ??= transaction().scope({
      scope,
      writing: { table: this.#served.collection.name, id: this.#write.id },
    });
    return this.#scope.call(call);
  }
}

/** What a hook is given. */
const shown = showing<HookRun>([
  ...(['action', 'id', 'before', 'after', 'principal', 'now', 'refuse'] as const),
  ...(['resources', 'emit', 'mail'] as const),
]);

function opened<D>({ collection, files }: Served, document: D): D {
  return files === undefined ? document : withOpenFiles(document, collection.files, files.open);
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
  failUnlessJson(after, named);
  // It may keep the files of the write, and remove some.
  const known = served.files === undefined ? undefined : (fieldsOf(write) as Members);
  const proposed = proposeCreate(served.collection, served.validator, after, undefined, known);
  if (proposed.ok && !namesUpload(served.collection, proposed.fields)) return { fields: proposed.fields };
  if (proposed.ok) throw new FunctionFailed(`${named} names an upload, which only a request may`);
  const { errors = [], code } = proposed.problem;
  const faults = errors.map(({ pointer, message }) => `${pointer} ${message}`).join('; ');
  throw new FunctionFailed(`${named} left a document that cannot be stored (${code}): ${faults}`);
}

/** A schema may take any value, and only some can be stored. Found here, because later nothing would name the hook. */
function failUnlessJson(after: unknown, named: string): void {
  try {
    JSON.stringify(after);
  } catch (error) {
    const [why = ''] = (error instanceof Error ? error.message : String(error)).split('\n', 1);
    throw new FunctionFailed(`${named} left a document that is not JSON: ${why}`, { cause: error });
  }
}
