/**
 * The input of an action, by its schema: the content as JSON or a form, or the query string of GET and DELETE, whose
 * content has no meaning (RFC 9110 §9.3.1, §9.3.5). An input with files is multipart only; its document is validated with
 * the index of each file in the place of the file, because schemas are about JSON.
 */
import type { TObject } from 'typebox';
import type { Problem } from '../../http/problem.ts';
import type { Json } from '../../http/syntax/json.ts';
import type { MediaType } from '../../http/syntax/media-type.ts';
import { parseQueryString } from '../../http/syntax/query-string.ts';
import { type ActionLimits, closed, judge } from '../../kernel/action.ts';
import { type ContentShape, contentShape, type Parsed } from '../../kernel/content/content-shape.ts';
import { formDocument, parseContent } from '../../kernel/content/parse-content.ts';
import { compileValidator, type Validator } from '../../kernel/content/validator.ts';
import type { Ask, Operation, Standing, Understood } from '../../kernel/resource.ts';
import type { BodyFormat } from '../../model/collection.ts';
import { copyJson } from '../../model/json-value.ts';
import type { ActionMethod } from '../../model/logic/actions.ts';
import { type Upload, type UploadRule, uploadRule } from '../../model/logic/upload.ts';
import { whenKnown } from '../../store/store.ts';

export type InputFields = Readonly<Record<string, unknown>>;

export type ReadInput = { readonly problem: Problem } | { readonly fields: InputFields };

export type ActionInput = {
  readonly stages: Pick<
    Operation<Standing, unknown>,
    'contentTypes' | 'contentOptional' | 'understand' | 'contentBytesMax'
  >;
  /** @param content what `understand` returned */
  readonly read: (ask: Ask, content: unknown) => ReadInput;
  /** Closed, as it validates; files as they were declared. */
  readonly schema: TObject | undefined;
  readonly uploads: Uploads;
  readonly inQuery: boolean;
};

const formats: ReadonlySet<BodyFormat> = new Set(['json', 'form', 'multipart']);

const multipart = 'multipart/form-data';
const inputTypes = ['application/json', 'application/x-www-form-urlencoded', multipart];

export function typesOf({ uploads }: Pick<ActionInput, 'uploads'>): readonly string[] {
  return uploads.size === 0 ? inputTypes : [multipart];
}

/** The members that are files, or lists of files. */
export type Uploads = ReadonlyMap<string, { readonly rule: UploadRule; readonly filesMax: number }>;

const nothing: ReadInput = { fields: {} };

export function actionInput(
  declared: TObject | undefined,
  method: ActionMethod,
  limits: ActionLimits & { readonly actionBytesMax: number },
): ActionInput {
  const inQuery = method === 'GET' || method === 'DELETE';
  const uploads = uploadsOf(declared);
  if (declared === undefined) return { stages: {}, read: () => nothing, schema: undefined, uploads, inQuery };
  const schema = closed(declared);
  const validated = uploads.size === 0 ? schema : withIndexes(schema, uploads);
  const shape = shapeOf(validated, uploads);
  // Compiled with the first request, so that actions cost no time of the start.
  let validator: Validator | undefined;
  const check = (content: unknown): ReadInput => {
    validator ??= compileValidator({ schema: validated, textBounds: [] }, limits.validationErrorsMax);
    const filled = validator.fillDefaults?.(content as Json) ?? content;
    const { problem, fields } = judge(validator, filled);
    return problem === null ? { fields } : { problem };
  };
  if (inQuery) {
    const read = (ask: Ask): ReadInput => ofQuery(ask.query, shape, limits, check);
    return { stages: {}, schema, uploads, inQuery, read };
  }
  return {
    ...{ schema, uploads, inQuery },
    stages: {
      contentTypes: typesOf({ uploads }),
      contentOptional: demandedMembers(schema).length === 0,
      ...(uploads.size === 0 ? {} : { contentBytesMax: bytesMaxOf(uploads) + limits.actionBytesMax }),
      understand: (_ask: Ask, bytes: Uint8Array, mediaType: MediaType) =>
        whenKnown(parseContent(bytes, mediaType, shape, limits), understood),
    },
    read: (_ask, content) => {
      const { document, files } = (content ?? { document: {}, files: [] }) as Content;
      const read = check(document);
      return 'fields' in read && uploads.size > 0 ? { fields: withFiles(read.fields, uploads, files) } : read;
    },
  };
}

/** What `understand` returns. */
type Content = { readonly document: unknown; readonly files: readonly Upload[] };

function uploadsOf(schema: TObject | undefined): Uploads {
  const uploads = new Map<string, { rule: UploadRule; filesMax: number }>();
  for (const [name, member] of Object.entries(schema?.properties ?? {})) {
    const { items, maxItems } = member as { items?: unknown; maxItems?: number };
    const rule = uploadRule(member) ?? uploadRule(items);
    if (rule !== undefined) uploads.set(name, { rule, filesMax: items === undefined ? 1 : (maxItems ?? 1) });
  }
  return uploads;
}

function bytesMaxOf(uploads: Uploads): number {
  return [...uploads.values()].reduce((sum, { rule, filesMax }) => sum + rule.bytesMax * filesMax, 0);
}

/** The schema of the document, in which a file is its index. */
function withIndexes(schema: TObject, uploads: Uploads): TObject {
  const properties = Object.entries(schema.properties).map(([name, member]) => {
    if (!uploads.has(name)) return [name, member];
    const { items } = member as { items?: unknown };
    const index = { type: 'integer' };
    return [name, items === undefined ? index : { ...member, items: index }];
  });
  // TypeBox keeps internal data in properties that are not enumerable.
  const copy: object = Object.defineProperties({}, Object.getOwnPropertyDescriptors(schema));
  return Object.assign(copy, { properties: Object.fromEntries(properties) }) as TObject;
}

function shapeOf(schema: TObject, uploads: Uploads): ContentShape {
  const shape = contentShape({ schema, formats, textField: undefined });
  if (uploads.size === 0) return shape;
  const files = [...shape.places].flatMap(([spelling, { path }]) => {
    const upload = path.length === 1 ? uploads.get(path[0] ?? '') : undefined;
    return upload === undefined ? [] : [[spelling, upload.rule] as const];
  });
  return { ...shape, files: new Map(files) };
}

function withFiles(fields: InputFields, uploads: Uploads, files: readonly Upload[]): InputFields {
  const filled: Record<string, unknown> = { ...fields };
  for (const name of uploads.keys()) {
    const found = fields[name];
    if (Array.isArray(found)) filled[name] = found.map((index) => files[index]);
    else if (typeof found === 'number') filled[name] = files[found];
  }
  return filled;
}

/** A copy for one run of the handler: an action that is overtaken runs again with the same input. */
export function copyInput(fields: InputFields, uploads: Uploads): InputFields {
  if (uploads.size === 0) return copyJson(fields as Json) as InputFields;
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => {
      if (!uploads.has(name)) return [name, copyJson(value as Json)];
      return [name, Array.isArray(value) ? value.map(copyUpload) : copyUpload(value as Upload)];
    }),
  );
}

/** In memory of its own: the handler may look at the whole of `bytes.buffer`. */
function copyUpload({ bytes, ...rest }: Upload): Upload {
  return { ...rest, bytes: new Uint8Array(bytes) };
}

/** The members that a request must have: a default stands for the others. */
export function demandedMembers({ required, properties }: TObject): readonly string[] {
  return ((required ?? []) as readonly string[]).filter((name) => {
    const schema: unknown = properties[name];
    return typeof schema !== 'object' || schema === null || !Object.hasOwn(schema, 'default');
  });
}

function understood(parsed: Parsed): Understood<Content> {
  if (!parsed.ok) return { ok: false, problem: parsed.problem };
  return { ok: true, value: { document: parsed.value, files: parsed.files ?? [] } };
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
