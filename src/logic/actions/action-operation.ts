/**
 * An action of an application as an operation of the kernel (§4.1): its handler runs in one transaction, which is
 * committed with the companions of the request before the response, and again if the transaction was overtaken. With
 * GET and QUERY the handler only reads, in the stage of the walk that may still refuse.
 */
import { type DeclaredAction, isOwnOutput } from '../../config/actions.ts';
import type { HeldMemory } from '../../http/message.ts';
import type { Problem } from '../../http/problem.ts';
import type { ActionLimits } from '../../kernel/action.ts';
import {
  type Ask,
  causeOfAsk,
  type Made,
  type Operation,
  type Proposal,
  type Representation,
  type Result,
  type Standing,
  type Validators,
} from '../../kernel/resource.ts';
import { permission, permits } from '../../model/access.ts';
import { type RulePrincipal, toRulePrincipal } from '../../model/access-function.ts';
import { withOpenFiles } from '../../model/file.ts';
import type { Output } from '../../model/logic/actions.ts';
import type { Principal } from '../../model/principal.ts';
import type { LoopTurns } from '../../observe/event-loop.ts';
import { callAs } from '../../observe/running-function.ts';
import type { Tracing } from '../../observe/tracing.ts';
import { actionStanding } from '../../resources/collection/member.ts';
import type { WriteFiles } from '../../resources/collection/served-collection.ts';
import { type Change, Overtaken, type Row, type Store, StoreUnavailable } from '../../store/store.ts';
import { FunctionFailed } from '../function-failed.ts';
import { FunctionRun, problemOrFailure, ShownRun, showing } from '../function-run.ts';
import { refuseWith } from '../refusal.ts';
import { type Calls, callsOver } from '../transaction/calls.ts';
import type { OpenTransaction, Scope } from '../transaction/resource-call.ts';
import { commitTransaction } from '../transaction/unit-logic.ts';
import {
  type ActionInput,
  actionInput,
  actionOutput,
  copyInput,
  type Given,
  type InputFields,
  type ReadOutput,
} from './action-content.ts';
import { fieldsOf } from './action-octets.ts';

export type ActionServices = {
  readonly store: Store;
  readonly clock: () => number;
  readonly turns: LoopTurns;
  readonly open: OpenTransaction;
  readonly tracing?: Tracing | undefined;
  /** Absent: no collection has files. */
  readonly files?: WriteFiles | undefined;
  readonly limits: ActionLimits & {
    readonly actionTimeoutMs: number;
    readonly actionBytesMax: number;
    readonly pageBytesMax: number;
  };
};

type RowStanding = Standing & {
  readonly row: Row | undefined;
  /** The rows beyond references by which the caller was judged. */
  readonly restsOn: readonly Change[];
};

type Ready = Proposal & {
  readonly fields: InputFields;
  /** The output of a safe method. */
  readonly given?: Given;
};

/** An action with what is prepared once. */
type Served = ActionServices & {
  readonly action: DeclaredAction;
  readonly input: ActionInput;
  readonly readOutput: ReadOutput;
  /** `the action POST /tickets/{id}/merge` */
  readonly named: string;
  readonly safe: boolean;
  /** Response fields. */
  readonly fields: readonly string[];
};

export function isSafeAction({ method }: Pick<DeclaredAction, 'method'>): boolean {
  return method === 'GET' || method === 'QUERY';
}

/** What the response is; `json` also for none. */
export function outputKind({ output }: Pick<DeclaredAction, 'output'>) {
  return output !== undefined && isOwnOutput(output) ? output.kind : 'json';
}

export function actionOperation(
  action: DeclaredAction,
  services: ActionServices,
): { readonly operation: Operation; readonly input: ActionInput } {
  const { rule, collection, method } = action;
  const named = `the action ${method} ${action.pattern}`;
  const input = actionInput(action.input, method, services.limits);
  const safe = isSafeAction(action);
  const served: Served = {
    ...services,
    ...{
      action,
      input,
      named,
      safe,
      readOutput: actionOutput(action.output, named, { turns: services.turns, safe }),
    },
    fields: fieldsOf(action),
  };
  const kind = safe ? 'read' : 'update';
  const member = action.on === 'member' ? collection : undefined;
  const operation: Operation<RowStanding, unknown, Ready> = {
    permission: (principal) => permission(rule, kind, principal),
    standing: (ask) =>
      member === undefined
        ? {
            ...{ exists: true, visible: true, row: undefined, restsOn: [] },
            permitted: permits(rule, kind, ask.principal, noSubject),
          }
        : actionStanding({ store: services.store, collection: member }, ask, rule, kind),
    ...(member === undefined || safe
      ? {}
      : { changes: ({ captures }: Ask) => ({ table: member.name, id: captures[0] ?? '' }) }),
    ...input.stages,
    offers: offersOf(action),
    reports: true,
    ...redirectOf(action),
    ...(safe ? readingStages(served) : changingStages(served)),
  };
  return { operation: operation as Operation, input };
}

const noSubject = { owner: null, member: () => undefined };

/** Without parameters. */
export function mediaTypeOf({ mediaType }: Output): string {
  return mediaType.split(';', 1)[0] ?? '';
}

const octetStream = 'application/octet-stream';

function offersOf({ output }: DeclaredAction): readonly string[] {
  if (output === undefined || !isOwnOutput(output)) return ['application/json'];
  const type = mediaTypeOf(output);
  // Octets of no declared type may have any: the handler says which.
  const isAny = output.kind === 'redirect' || (output.kind === 'bytes' && type === octetStream);
  return isAny ? ['*/*'] : [type];
}

function redirectOf({ output }: DeclaredAction): Pick<Operation, 'redirect'> {
  if (output === undefined || !isOwnOutput(output) || output.kind !== 'redirect') return {};
  return {
    redirect: output.status === 307 ? 'temporary' : output.status === 308 ? 'permanent' : 'see_other',
  };
}

function readingStages(
  served: Served,
): Pick<Operation<RowStanding, unknown, Ready>, 'propose' | 'represent' | 'validators' | 'ranges'> {
  const kind = outputKind(served.action);
  return {
    // A HEAD or a conditional request has its handler run as well: it knows the validators.
    ...(kind === 'bytes'
      ? {
          ranges: true,
          validators: (_ask: Ask, _standing: RowStanding, proposal: Ready | undefined) =>
            proposal?.given?.validators ?? noValidators,
        }
      : {}),
    propose: async (ask, standing, content) => {
      const read = served.input.read(ask, content);
      if ('problem' in read) return { ...read, fields: {} };
      const ran = await run(served, ask, standing, read.fields);
      if (ran instanceof Overtaken) throw new Error(`${served.named} only reads, and was overtaken`);
      if ('refused' in ran) return { problem: ran.refused, fields: {} };
      const { given } = ran;
      return {
        ...{ problem: null, fields: read.fields, given },
        ...(kind === 'redirect' ? { elsewhere: given.location ?? '' } : {}),
      };
    },
    represent: (_ask, _standing, proposal): Representation => {
      const { content, media, fields, validators } = proposal?.given ?? {};
      return {
        content: content ?? 'null',
        mediaType: media?.type ?? 'application/json',
        validators: validators ?? noValidators,
        cacheControl: validators?.cacheControl ?? 'private, no-store',
        // Without a validator, two runs of the handler may give parts of different octets.
        ranges: validators !== undefined,
        fields: fields ?? served.fields,
      };
    },
  };
}

const noValidators: Validators = { tag: null, modifiedAt: null };

function changingStages(
  served: Served,
): Pick<Operation<RowStanding, unknown, Ready>, 'propose' | 'act' | 'idempotent' | 'asynchronous'> {
  const kind = outputKind(served.action);
  return {
    // A stream can be sent only once.
    idempotent: kind !== 'stream',
    // The outcome of an operation is JSON; a stored request has no query string.
    asynchronous: (kind === 'json' || kind === 'redirect') && !(served.input.inQuery && served.action.input),
    propose: (ask, _standing, content) => {
      const read = served.input.read(ask, content);
      return 'problem' in read ? { ...read, fields: {} } : { ...read, problem: null };
    },
    act: async (ask, standing, proposal): Promise<Result> => {
      const ran = await run(served, ask, standing, proposal?.fields ?? {});
      if (ran instanceof Overtaken || 'refused' in ran) return ran;
      return commitTransaction(served, ask, ran.transaction, { made: madeOf(served, ran.given), rev: 0 });
    },
  };
}

/** As it is stored for a repetition of the request: octets as text. */
function madeOf(served: Served, { content, media, stream, location, fields = served.fields }: Given): Made {
  const isBase64 = content instanceof Uint8Array;
  const doc = isBase64
    ? Buffer.from(content.buffer, content.byteOffset, content.byteLength).toString('base64')
    : typeof content === 'string'
      ? content
      : null;
  return {
    ...{ outcome: 'made', created: false, modifiedAt: null, validated: false },
    ...{ location, doc },
    ...(stream === undefined ? {} : { stream }),
    ...(media === undefined ? {} : { media: isBase64 ? { ...media, isBase64 } : media }),
    ...(fields.length === 0 ? {} : { fields }),
  };
}

type Ran =
  | { readonly given: Given; readonly transaction: ReturnType<OpenTransaction> }
  | { readonly refused: Problem }
  | Overtaken;

/** @param row of the member, by which the caller was judged, with `restsOn` @throws FunctionFailed, StoreUnavailable */
async function run(
  served: Served,
  ask: Ask,
  { row, restsOn }: RowStanding,
  fields: InputFields,
): Promise<Ran> {
  const { action, named, safe, limits } = served;
  const { memory } = ask.request;
  const transaction = served.open(ask.principal, causeOfAsk(ask), { memory });
  if (row !== undefined && !safe) {
    const table = action.collection?.name ?? '';
    const found = await transaction.read(table, row.id);
    if (found?.rev !== row.rev) return new Overtaken({ table, id: row.id });
    for (const { table: other, id, expect } of restsOn) {
      const now = await transaction.read(other, id);
      if (now?.rev !== ('rev' in expect ? expect.rev : undefined)) return new Overtaken({ table: other, id });
    }
  }
  const scope = transaction.scope();
  const running = new FunctionRun(named);
  const stopping = new Stopping(running);
  const forget = ask.request.onGone?.(() => stopping.stop('the client has left'));
  const onBegin = (held: HeldMemory): void => transaction.streams(held);
  const onEnd = (): void => {
    scope.end();
    stopping.stop(`${named} has ended`);
  };
  let streams = false;
  try {
    const { given: acting } = new ActionRun(served, ask, {
      row,
      fields,
      scope,
      stopping,
      running,
      transaction,
    });
    const call = () => callAs(running, () => action.handler(acting as never));
    const { tracing } = served;
    const part = { name: named, parent: ask.request.traceparent };
    const began = tracing === undefined ? call() : tracing.within(part, call);
    const value = await running.settled<unknown>(began, { ms: limits.actionTimeoutMs, setting });
    const given = served.readOutput(value, { onBegin, onEnd }, running);
    streams = given.stream !== undefined;
    return { given, transaction };
  } catch (error) {
    stopping.stop(`${named} has ended`);
    const torn = safe || error instanceof StoreUnavailable ? undefined : transaction.torn();
    if (torn !== undefined) return new Overtaken(torn);
    return { refused: problemOrFailure(error, named) };
  } finally {
    forget?.();
    running.end();
    // The generator of a stream runs while it is sent; what it writes could not be committed any more.
    if (!streams || !safe) scope.end();
  }
}

const setting = 'COMITY_ACTION_TIMEOUT_MS';

/** The signal of a handler, made when it is first read: most handlers need none. */
class Stopping {
  readonly #running: FunctionRun;
  #controller: AbortController | undefined;
  #why: string | undefined;

  constructor(running: FunctionRun) {
    this.#running = running;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#why !== undefined) this.stop(this.#why);
    }
    return this.#controller.signal;
  }

  stop(why: string): void {
    this.#why ??= why;
    const controller = this.#controller;
    if (controller === undefined) return;
    const reason = new Error(this.#why);
    callAs(this.#running, () => controller.abort(reason));
  }
}

type Running = {
  readonly row: Row | undefined;
  readonly fields: InputFields;
  readonly scope: Scope;
  readonly stopping: Stopping;
  readonly running: FunctionRun;
  readonly transaction: Pick<ReturnType<OpenTransaction>, 'opened'>;
};

/** One run of the handler of an action. */
class ActionRun extends ShownRun {
  readonly given: object;
  readonly id: string | undefined;
  readonly captures: Readonly<Record<string, string>>;
  readonly input: unknown;
  readonly now: Date;
  readonly refuse: ReturnType<typeof refuseWith>;
  readonly resources: Calls['resources'];
  readonly emit: Calls['emit'];
  readonly mail: Calls['mail'];
  readonly #served: Served;
  readonly #caller: Principal;
  readonly #row: Row | undefined;
  readonly #stopping: Stopping;
  #document: unknown;

  constructor(served: Served, ask: Ask, { row, fields, scope, stopping, running, transaction }: Running) {
    super();
    const { action, named, safe } = served;
    const isMember = action.on === 'member';
    const own = isMember ? ask.captures.slice(1) : ask.captures;
    const calls = callsOver(
      (call) => {
        if (!safe || call.do === 'get' || call.do === 'list') return scope.call(call);
        throw new FunctionFailed(`${named} has a safe method and may only read, and called ${call.do}`);
      },
      running.watch,
      transaction.opened,
    );
    this.id = isMember ? ask.captures[0] : undefined;
    this.captures = Object.fromEntries(action.captures.map((name, index) => [name, own[index] ?? '']));
    this.input = copyInput(fields, served.input.uploads);
    this.now = new Date(served.clock());
    this.refuse = refuseWith(action.codes);
    this.resources = calls.resources;
    this.emit = calls.emit;
    this.mail = calls.mail;
    this.#served = served;
    this.#caller = ask.principal;
    this.#row = row;
    this.#stopping = stopping;
    this.given = shown(this);
  }

  get document(): unknown {
    this.#document ??= this.#row === undefined ? undefined : this.#opened(JSON.parse(this.#row.doc));
    return this.#document;
  }

  get principal(): RulePrincipal {
    return toRulePrincipal(this.#caller);
  }

  #opened(document: unknown): unknown {
    const { files, action } = this.#served;
    return files === undefined ? document : withOpenFiles(document, action.collection?.files, files.open);
  }

  get signal(): AbortSignal {
    return this.#stopping.signal;
  }
}

/** What the handler is given. */
const shown = showing<ActionRun>([
  ...(['id', 'document', 'captures', 'input', 'principal', 'now', 'refuse', 'signal'] as const),
  ...(['resources', 'emit', 'mail'] as const),
]);
