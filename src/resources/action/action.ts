/**
 * POST to an action path (§4.1, §4.4): something is done that is no change of one resource, such as logging in. Its content is declared
 * by a schema like that of a collection, and faults in it are told in the same way.
 *
 * An action takes part in neither Idempotency-Key nor respond-async, unless it makes a resource and says so: both keep answers, and these may
 * hold credentials.
 */
import type { TObject } from 'typebox';
import type { Allowance } from '../../http/allowance.ts';
import type { Problem } from '../../http/problem.ts';
import type { MediaType } from '../../http/syntax/media-type.ts';
import type { Permission } from '../../model/access.ts';
import type { Principal } from '../../model/principal.ts';
import { type MaybePromise, Overtaken, type RowName } from '../../store/store.ts';
import type { ContentLimits } from '../content/content-limits.ts';
import { contentShape } from '../content/form-shape.ts';
import { parseContent } from '../content/parse-content.ts';
import type { Parsed } from '../content/parsed.ts';
import { compileValidator, type Validator } from '../document/validator.ts';
import type { Ask, Made, Operation, Proposal, Resource, Result, Standing, Understood } from '../resource.ts';

/** What became of the action. */
export type Done =
  | {
      /** Content of the answer; null: 204. */
      readonly content: Readonly<Record<string, unknown>> | null;
      /** Path of the resource that was made: 201 with Location. */
      readonly created?: string;
      /** Path of what tells how it goes: 202 with Location, for what is done after the answer. */
      readonly queued?: string;
      /** Further fields: Set-Cookie. */
      readonly fields?: readonly string[];
    }
  | { readonly refused: Problem; readonly allowance?: Allowance }
  /** Another change came first: the action waits for its turn and is done anew. */
  | Overtaken;

export type ActionOptions<S extends Standing = Standing> = {
  readonly path: string;
  /** Of the content; undefined: none is wanted, and what comes is not read. */
  readonly schema: TObject | undefined;
  /** No content is the same as an empty object. Default false: then 400. */
  readonly contentOptional?: boolean;
  readonly limits: ContentLimits & { readonly validationErrorsMax: number };
  /** Default false: see `Resource`. */
  readonly ignoresCredentials?: boolean;
  /** Default: anyone. */
  readonly permission?: (principal: Principal) => Permission;
  /** What stands at a path with captures; default: the action always does. */
  readonly standing?: (ask: Ask) => MaybePromise<S>;
  /** The row that it changes, where the request alone tells. */
  readonly changes?: (ask: Ask) => RowName;
  readonly act: (ask: Ask, content: Readonly<Record<string, unknown>>, standing: S) => Promise<Done>;
};

type Content = Proposal & { readonly fields: Readonly<Record<string, unknown>> };

const open: Standing = { exists: true, visible: true, permitted: true };
const contentTypes = ['application/json', 'application/x-www-form-urlencoded'];
const formats = new Set(['json', 'form'] as const);

export function actionResource<S extends Standing>(options: ActionOptions<S>): Resource {
  return {
    pattern: options.path,
    operations: new Map([['POST', actionOperation(options) as Operation]]),
    constantFields: [],
    offers: ['application/json'],
    ignoresCredentials: options.ignoresCredentials ?? false,
  };
}

export function actionOperation<S extends Standing>(
  options: ActionOptions<S>,
): Operation<S, unknown, Content> {
  const { permission = () => 'granted', standing = () => open as S, changes } = options;
  return {
    permission,
    standing,
    ...(changes === undefined ? {} : { changes }),
    reports: true,
    ...(options.schema === undefined ? {} : contentStages(options.schema, options.limits)),
    contentOptional: options.contentOptional ?? false,
    act: async (ask, standing, proposal) =>
      resultOf(await options.act(ask, proposal?.fields ?? {}, standing)),
  };
}

type ContentStages = Pick<Operation<Standing, unknown, Content>, 'contentTypes' | 'understand' | 'propose'>;

function contentStages(schema: TObject, limits: ActionOptions['limits']): ContentStages {
  const shape = contentShape({ schema, formats, textField: undefined });
  const validator = compileValidator({ schema, textBounds: [] }, limits.validationErrorsMax);
  const understood = (parsed: Parsed): Understood<unknown> =>
    parsed.ok ? { ok: true, value: parsed.value } : { ok: false, problem: parsed.problem };
  return {
    contentTypes,
    understand: (_ask, bytes: Uint8Array, mediaType: MediaType) => {
      const parsed = parseContent(bytes, mediaType, shape, limits);
      return parsed instanceof Promise ? parsed.then(understood) : understood(parsed);
    },
    propose: (_ask, _standing, content = {}) => judge(validator, content),
  };
}

/** A missing member outranks an invalid one, as in a collection (surface, "400 or 422"). */
function judge(validator: Validator, content: unknown): Content {
  if (typeof content !== 'object' || content === null || Array.isArray(content)) {
    const errors = [{ pointer: '', message: 'must be an object' }];
    return { problem: { code: 'validation_failed', errors }, fields: {} };
  }
  const fields = content as Readonly<Record<string, unknown>>;
  const { missing, invalid } = validator.check(fields);
  if (missing.length + invalid.length === 0) return { problem: null, fields };
  const code = missing.length > 0 ? 'field_missing' : 'validation_failed';
  return { problem: { code, errors: [...missing, ...invalid].slice(0, validator.errorsMax) }, fields: {} };
}

function resultOf(done: Done): Result {
  return done instanceof Overtaken || 'refused' in done ? done : { made: madeBy(done), rev: 0 };
}

/** The result of an action, for what is committed with it. */
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
