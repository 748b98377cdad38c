/**
 * The input of an action, by its schema: the content as JSON or a form, or the query string of GET and DELETE, whose
 * content has no meaning (RFC 9110 §9.3.1, §9.3.5).
 */
import type { TObject } from 'typebox';
import type { Problem } from '../../http/problem.ts';
import type { Json } from '../../http/syntax/json.ts';
import type { MediaType } from '../../http/syntax/media-type.ts';
import { parseQueryString } from '../../http/syntax/query-string.ts';
import { type ActionLimits, closed, judge } from '../../kernel/action.ts';
import { formDocument } from '../../kernel/content/form-content.ts';
import { type ContentShape, contentShape } from '../../kernel/content/form-shape.ts';
import { parseContent } from '../../kernel/content/parse-content.ts';
import type { Parsed } from '../../kernel/content/parsed.ts';
import { compileValidator, type Validator } from '../../kernel/content/validator.ts';
import type { Ask, Operation, Standing, Understood } from '../../kernel/resource.ts';
import type { BodyFormat } from '../../model/collection.ts';
import type { ActionMethod } from '../../model/logic/actions.ts';
import { whenKnown } from '../../store/when-known.ts';

export type InputFields = Readonly<Record<string, unknown>>;

export type ReadInput = { readonly problem: Problem } | { readonly fields: InputFields };

export type ActionInput = {
  readonly stages: Pick<Operation<Standing, unknown>, 'contentTypes' | 'contentOptional' | 'understand'>;
  /** @param content what `understand` returned */
  readonly read: (ask: Ask, content: unknown) => ReadInput;
  /** Closed, as it validates. */
  readonly schema: TObject | undefined;
  readonly inQuery: boolean;
};

const formats: ReadonlySet<BodyFormat> = new Set(['json', 'form', 'multipart']);

export const inputTypes = ['application/json', 'application/x-www-form-urlencoded', 'multipart/form-data'];

const nothing: ReadInput = { fields: {} };

export function actionInput(
  declared: TObject | undefined,
  method: ActionMethod,
  limits: ActionLimits,
): ActionInput {
  const inQuery = method === 'GET' || method === 'DELETE';
  if (declared === undefined) return { stages: {}, read: () => nothing, schema: undefined, inQuery };
  const schema = closed(declared);
  const shape = contentShape({ schema, formats, textField: undefined });
  // Compiled with the first request, so that actions cost no time of the start.
  let validator: Validator | undefined;
  const check = (content: unknown): ReadInput => {
    validator ??= compileValidator({ schema, textBounds: [] }, limits.validationErrorsMax);
    const filled = validator.fillDefaults?.(content as Json) ?? content;
    const { problem, fields } = judge(validator, filled);
    return problem === null ? { fields } : { problem };
  };
  if (inQuery) {
    return { stages: {}, schema, inQuery, read: (ask) => ofQuery(ask.query, shape, limits, check) };
  }
  return {
    ...{ schema, inQuery },
    stages: {
      contentTypes: inputTypes,
      contentOptional: demandedMembers(schema).length === 0,
      understand: (_ask: Ask, bytes: Uint8Array, mediaType: MediaType) =>
        whenKnown(parseContent(bytes, mediaType, shape, limits), understood),
    },
    read: (_ask, content = {}) => check(content),
  };
}

/** The members that a request must have: a default stands for the others. */
export function demandedMembers({ required, properties }: TObject): readonly string[] {
  return ((required ?? []) as readonly string[]).filter((name) => {
    const schema: unknown = properties[name];
    return typeof schema !== 'object' || schema === null || !Object.hasOwn(schema, 'default');
  });
}

function understood(parsed: Parsed): Understood<unknown> {
  return parsed.ok ? { ok: true, value: parsed.value } : { ok: false, problem: parsed.problem };
}

/** Any fault in a query string is one of the request target: 400. */
function ofQuery(
  query: string | undefined,
  shape: ContentShape,
  limits: ActionLimits,
  check: (content: unknown) => ReadInput,
): ReadInput {
  const pairs = parseQueryString(query ?? '', limits.formFieldsMax);
  const code = 'query_parameter_invalid';
  if (pairs === undefined) return { problem: { code, message: 'malformed query string' } };
  const document = formDocument(
    pairs.filter(([name]) => name !== 'api_key'),
    shape,
  );
  const read = document.ok ? check(document.value) : { problem: document.problem };
  if ('fields' in read) return read;
  const { message, errors } = read.problem;
  const [first] = errors ?? [];
  const told = message ?? (first === undefined ? undefined : `${first.pointer.slice(1)} ${first.message}`);
  return {
    problem: {
      code,
      ...(told === undefined ? {} : { message: told }),
      ...(errors === undefined ? {} : { errors }),
    },
  };
}
