/**
 * An action (§4.1, §4.4): a route that does more than read or write a resource, such as logging in or rotating a
 * secret. The file of its handler declares it once. The route, the validation of the input and the OpenAPI description
 * come from that declaration, so the published schema is the one that validates requests.
 *
 * Actions do not support respond-async, and support Idempotency-Key only where they create a resource and declare it:
 * both store responses, and those may contain credentials.
 */
import type { Static, TObject, TSchema } from 'typebox';
import type { SchemaNode } from '../config/declared-schema.ts';
import { isComposed } from '../config/unknown-members.ts';
import type { Allowance } from '../http/message.ts';
import type { Problem } from '../http/problem.ts';
import type { ProblemCode } from '../http/problem-registry.ts';
import type { FieldName } from '../http/response-fields.ts';
import type { MediaType } from '../http/syntax/media-type.ts';
import { parseQueryString } from '../http/syntax/query-string.ts';
import type { Permission } from '../model/access.ts';
import type { Members } from '../model/json-value.ts';
import type { Principal } from '../model/principal.ts';
import { type MaybePromise, Overtaken, type RowName } from '../store/store.ts';
import { type ContentLimits, contentShape, type Parsed } from './content/content-shape.ts';
import { parseContent } from './content/parse-content.ts';
import { closeSchema, compileValidator, type Validator } from './content/validator.ts';

import {
  type Content,
  type Item,
  json,
  type MemberAccess,
  named,
  type OperationDocumentation,
  type SchemeName,
  type Tag,
} from './documentation.ts';
import type {
  Ask,
  Made,
  Operation,
  Postponed,
  Proposal,
  Representation,
  Resource,
  Result,
  Standing,
  Understood,
} from './resource.ts';

export type Done =
  | {
      /** Content of the response; null: 204. */
      readonly content: Readonly<Record<string, unknown>> | null;
      /** Path of the created resource: 201 with Location. */
      readonly created?: string;
      /** Path of the resource that shows the progress of work done after the response: 202 with Location. */
      readonly queued?: string;
      /** Further fields: Set-Cookie. */
      readonly fields?: readonly string[];
    }
  | { readonly refused: Problem; readonly allowance?: Allowance }
  /** The request is stored, and carried out as an operation (202): its handler runs again, with companions. */
  | Postponed
  /** Another change came first: the walk waits for its turn and runs the action again. */
  | Overtaken;

export type ActionInput<I extends TObject> = {
  /** The name of the schema in the OpenAPI document. */
  readonly name: string;
  /** Objects in it refuse undeclared members unless they say otherwise. */
  readonly schema: I;
  readonly example: Static<I>;
  /** Missing content counts as an empty object. Default false: 400. */
  readonly optional?: boolean;
};

export type ActionLimits = ContentLimits & { readonly validationErrorsMax: number };

/** The part of an action that belongs to one method. */
type ActionOperation<I extends TObject = TObject, S extends Standing = Standing> = {
  /** Default POST. The handler of a safe method changes nothing; it also runs for HEAD. */
  readonly method?: 'GET' | 'POST' | 'QUERY';
  /** `operationId` of the OpenAPI document. */
  readonly id: string;
  readonly summary: string;
  readonly description?: string;
  /** Absent: content has no meaning and is not read. */
  readonly input?: ActionInput<I>;
  /** Absent: the response has no content. */
  readonly output?: { readonly schema: Item | TSchema; readonly example?: unknown };
  readonly answers?: 'created' | 'created-or-changed' | 'queued';
  /** Codes that the handler, `check` and the standing may refuse with. */
  readonly codes: readonly ProblemCode[];
  /** Further response fields. */
  readonly fields?: readonly FieldName[];
  /** The accepted security schemes; absent: all. */
  readonly schemes?: readonly SchemeName[];
  /** Idempotency-Key is supported, and the stored result is encrypted. */
  readonly idempotent?: 'sealed';
  /** Default: anyone. */
  readonly permission?: (principal: Principal) => Permission;
  /** The standing of a path with captures; default: the target always exists. */
  readonly standing?: (ask: Ask) => MaybePromise<S>;
  /** The member of a collection whose access rules `standing` applies. */
  readonly member?: MemberAccess;
  /** `standing` may find nothing. */
  readonly mayBeMissing?: boolean;
  /** The row that the action changes, if the request alone determines it. */
  readonly changes?: (ask: Ask) => RowName;
  /** Validates what the schema cannot express; undefined: the input is valid. */
  readonly check?: (input: Static<I>, ask: Ask) => Problem | undefined;
  readonly handler: (ask: Ask, input: Static<I>, standing: S) => MaybePromise<Done>;
};

export type Action<I extends TObject = TObject, S extends Standing = Standing> = ActionOperation<I, S> & {
  /** `/api/v1/endpoints/{id}/rotate-secret` */
  readonly path: string;
  /** The captures of the path. */
  readonly parameters?: readonly Item[];
  readonly tag: Tag;
  /** See `PathDocumentation`. Default: the name of the input. */
  readonly name?: string;
  /** See `Resource`. Default false. */
  readonly ignoresCredentials?: boolean;
};

const open: Standing = { exists: true, visible: true, permitted: true };
const contentTypes = ['application/json', 'application/x-www-form-urlencoded'];
const formats = new Set(['json', 'form'] as const);

export function actionResource<I extends TObject, S extends Standing>(
  action: Action<I, S>,
  limits: ActionLimits,
): Resource {
  const { method = 'POST', name = action.input?.name, tag, parameters } = action;
  if (name === undefined) throw new Error(`the action ${action.id} has no name`);
  return {
    pattern: action.path,
    documentation: { name, tag, parameters },
    operations: new Map([[method, actionOperation(action, limits)]]),
    constantFields: [],
    offers: ['application/json'],
    ignoresCredentials: action.ignoresCredentials ?? false,
  };
}

/** The operation alone, for a resource that has other methods. */
export function actionOperation<I extends TObject, S extends Standing>(
  action: ActionOperation<I, S>,
  limits: ActionLimits,
): Operation {
  const {
    permission: mayCall = () => 'granted' as const,
    standing = () => open as S,
    changes,
    input,
  } = action;
  const schema = input === undefined ? undefined : closed(input.schema);
  const stages = schema === undefined ? {} : contentStages(schema, limits, action.check);
  const operation: Operation<S, unknown, Sound> = {
    documentation: documentationOf(action, schema),
    permission: mayCall,
    standing,
    ...(changes === undefined ? {} : { changes }),
    ...(action.idempotent === undefined ? {} : { idempotent: action.idempotent }),
    ...stages,
    contentOptional: input?.optional ?? false,
    ...(isSafe(action) ? readingStages(action, stages.propose) : changingStages(action)),
  };
  return operation as Operation;
}

/** Leaves a composed schema to the validator: closing one part would refuse the members of another. */
export function closed(schema: TObject): TObject {
  return isComposed(schema as unknown as SchemaNode) ? schema : (closeSchema(schema) as TObject);
}

function isSafe({ method }: Pick<ActionOperation, 'method'>): boolean {
  return method === 'GET' || method === 'QUERY';
}

/** Validated input, or the problem with it. */
type Sound = Proposal & {
  readonly fields: Readonly<Record<string, unknown>>;
  /** The result of a safe method, whose handler has already run. */
  readonly done?: Extract<Done, { readonly content: unknown }>;
};

function changingStages<I extends TObject, S extends Standing>({ handler }: ActionOperation<I, S>) {
  return {
    reports: true,
    act: async (ask: Ask, standing: S, proposal: Sound | undefined): Promise<Result> =>
      resultOf(await handler(ask, (proposal?.fields ?? {}) as Static<I>, standing)),
  };
}

/** The handler of a safe method runs in the `propose` stage, so that it can refuse. */
function readingStages<I extends TObject, S extends Standing>(
  { id, method, handler }: ActionOperation<I, S>,
  judged: ContentStages['propose'],
) {
  return {
    propose: async (ask: Ask, standing: S, content: unknown): Promise<Sound> => {
      const unknown = method === 'GET' ? unknownParameter(ask.query ?? '') : undefined;
      if (unknown !== undefined) return { problem: unknown, fields: {} };
      const sound = (await judged?.(ask, standing, content)) ?? { problem: null, fields: {} };
      if (sound.problem !== null) return sound;
      const done = await handler(ask, sound.fields as Static<I>, standing);
      if (done instanceof Overtaken || 'postponed' in done)
        throw new Error(`the action ${id} has a safe method, but its handler changes something`);
      return 'refused' in done ? { ...sound, problem: done.refused } : { ...sound, done };
    },
    represent: (_ask: Ask, _standing: S, proposal: Sound | undefined): Representation => ({
      content: JSON.stringify(proposal?.done?.content ?? null),
      mediaType: 'application/json',
      validators: { tag: null, modifiedAt: null },
      cacheControl: 'private, no-store',
      fields: proposal?.done?.fields ?? [],
    }),
  };
}

/** A GET of an action has no parameters, besides the one that carries a credential. */
function unknownParameter(query: string): Problem | undefined {
  if (query === '') return undefined;
  const pairs = parseQueryString(query);
  const message =
    pairs === undefined
      ? 'malformed query string'
      : pairs
          .filter(([name]) => name !== 'api_key')
          .map(([name]) => `unknown query parameter ${JSON.stringify(name.slice(0, 64))}; there are none`)[0];
  return message === undefined ? undefined : { code: 'query_parameter_invalid', message };
}

type ContentStages = Pick<Operation<Standing, unknown, Sound>, 'contentTypes' | 'understand' | 'propose'>;

function contentStages<I extends TObject>(
  schema: TObject,
  limits: ActionLimits,
  check: ActionOperation<I>['check'],
): ContentStages {
  const shape = contentShape({ schema, formats, textField: undefined });
  // Compiled with the first content: together, those of all actions took 14 ms of each start.
  let validator: Validator | undefined;
  const understood = (parsed: Parsed): Understood<unknown> =>
    parsed.ok ? { ok: true, value: parsed.value } : { ok: false, problem: parsed.problem };
  return {
    contentTypes,
    understand: (_ask, bytes: Uint8Array, mediaType: MediaType) => {
      const parsed = parseContent(bytes, mediaType, shape, limits);
      return parsed instanceof Promise ? parsed.then(understood) : understood(parsed);
    },
    propose: (ask, _standing, content = {}) => {
      validator ??= compileValidator({ schema, textBounds: [] }, limits.validationErrorsMax);
      const judged = judge(validator, content);
      if (judged.problem !== null) return judged;
      return { ...judged, problem: check?.(judged.fields as Static<I>, ask) ?? null };
    },
  };
}

/** A missing member takes precedence over an invalid one, as in a collection. */
export function judge(validator: Validator, content: unknown): Sound {
  if (typeof content !== 'object' || content === null || Array.isArray(content)) {
    const errors = [{ pointer: '', message: 'must be an object' }];
    return { problem: { code: 'validation_failed', errors }, fields: {} };
  }
  const fields = (validator.instants?.keep(content as Members) ?? content) as Readonly<
    Record<string, unknown>
  >;
  const { missing, invalid } = validator.check(fields);
  if (missing.length + invalid.length === 0) return { problem: null, fields };
  const code = missing.length > 0 ? 'field_missing' : 'validation_failed';
  return { problem: { code, errors: [...missing, ...invalid].slice(0, validator.errorsMax) }, fields: {} };
}

function resultOf(done: Done): Result {
  return done instanceof Overtaken || 'refused' in done || 'postponed' in done
    ? done
    : { made: madeBy(done), rev: 0 };
}

/** The result of an action in the form that its companions receive. */
export function madeBy(done: Extract<Done, { readonly content: unknown }>): Made {
  return {
    outcome: 'made',
    created: done.created !== undefined,
    queued: done.queued !== undefined,
    location: done.created ?? done.queued ?? null,
    doc: done.content === null ? null : JSON.stringify(done.content),
    modifiedAt: null,
    validated: false,
    ...(done.fields === undefined ? {} : { fields: done.fields }),
  };
}

const creates = new Map<ActionOperation['answers'], 'always' | 'sometimes'>([
  ['created', 'always'],
  ['created-or-changed', 'sometimes'],
]);

/** @param schema of the input, closed as for validation */
function documentationOf<I extends TObject, S extends Standing>(
  action: ActionOperation<I, S>,
  schema: TObject | undefined,
): OperationDocumentation {
  const { id, summary, description, input, output, answers, fields, schemes, member, mayBeMissing } = action;
  const given = output === undefined ? undefined : json(output.schema as Item, output.example);
  const safe = isSafe(action);
  const changing = answers === 'created-or-changed' ? ['created', 'changed'] : [answers ?? 'changed'];
  const kinds = safe ? ['representation'] : changing;
  return {
    ...{ id, summary, description, schemes, member, mayBeMissing },
    takes: input === undefined || schema === undefined ? undefined : taken(input, schema),
    gives: given === undefined ? undefined : Object.fromEntries(kinds.map((kind) => [kind, given])),
    creates: creates.get(answers),
    queues: answers === 'queued' ? 'always' : undefined,
    [safe ? 'representationFields' : 'madeFields']: fields,
    codes: [
      ...((schema?.required?.length ?? 0) > 0 ? (['field_missing'] as const) : []),
      ...(schema === undefined ? [] : (['validation_failed'] as const)),
      ...action.codes,
    ],
  };
}

function taken<I extends TObject>({ name, example }: ActionInput<I>, closed: TObject): Content {
  const schema = named(name, closed as unknown as Item);
  return {
    'application/json': { schema, example },
    'application/x-www-form-urlencoded': { schema },
  };
}
