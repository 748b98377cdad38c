/**
 * The input and the output of an action, by their schemas. The input is the content as JSON or a form, or the query
 * string of GET and DELETE, whose content has no meaning (RFC 9110 §9.3.1, §9.3.5). An input with files is multipart only;
 * its document is validated with the index of each file in the place of the file, because schemas are about JSON.
 */
import type { TObject, TSchema } from 'typebox';
import { isOwnOutput } from '../../config/actions.ts';
import { CompiledSchema, type SchemaNode } from '../../config/declared-schema.ts';
import type { ContentSink, ContentStream, HeldMemory } from '../../http/message.ts';
import type { Problem } from '../../http/problem.ts';
import type { Json } from '../../http/syntax/json.ts';
import type { MediaType } from '../../http/syntax/media-type.ts';
import { parseQueryString } from '../../http/syntax/query-string.ts';
import { type ActionLimits, closed, judge } from '../../kernel/action.ts';
import { type ContentShape, contentShape, type Parsed } from '../../kernel/content/content-shape.ts';
import { formDocument, parseContent } from '../../kernel/content/parse-content.ts';
import { compileValidator, type Validator } from '../../kernel/content/validator.ts';
import type { Ask, Made, Operation, Standing, Understood } from '../../kernel/resource.ts';
import type { BodyFormat } from '../../model/collection.ts';
import { copyJson } from '../../model/json-value.ts';
import type { ActionMethod, Output, Pieces } from '../../model/logic/actions.ts';
import { type Upload, type UploadRule, uploadRule } from '../../model/logic/actions.ts';
import type { LoopTurns } from '../../observe/event-loop.ts';
import { callAs, type RunningFunction } from '../../observe/running-function.ts';
import { whenKnown } from '../../store/store.ts';
import { FunctionFailed } from '../function-failed.ts';
import { type GivenOctets, readOctets } from './action-octets.ts';

export type InputFields = Readonly<Record<string, unknown>>;

type ReadInput = { readonly problem: Problem } | { readonly fields: InputFields };

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

// The output: a value that does not fit its declaration is a fault of the
// application: the response is a 500, and nothing is written.

/** The parts of a response that the output determines. */
export type Given = Pick<Made, 'media' | 'stream' | 'location'> &
  Pick<GivenOctets, 'fields' | 'validators'> & {
    readonly content: string | Uint8Array | ContentStream | null;
  };

/** @throws FunctionFailed @param stream what hears of a stream that has begun, and of its end @param by the handler, whose generator runs then */
export type ReadOutput = (value: unknown, stream: StreamCalls, by: RunningFunction) => Given;

type StreamCalls = { readonly onBegin: (memory: HeldMemory) => void; readonly onEnd: () => void };

const noContent: Given = { location: null, content: null };
const faultsShownMax = 3;

/** @param named the action, for sentences */
export function actionOutput(
  declared: TSchema | Output | undefined,
  named: string,
  { turns, safe }: { readonly turns: LoopTurns; readonly safe: boolean },
): ReadOutput {
  if (declared === undefined) return () => noContent;
  if (!isOwnOutput(declared)) return jsonOutput(declared, named);
  const media = { type: declared.mediaType };
  const wrong = (expected: string, value: unknown): FunctionFailed =>
    new FunctionFailed(`${named} must return ${expected}, and returned ${shown(value)}`);
  switch (declared.kind) {
    case 'text':
      return (value) => {
        if (typeof value !== 'string') throw wrong('a string', value);
        return { media, location: null, content: value };
      };
    case 'bytes':
      return (value) => {
        return { ...readOctets(value, declared, { named, safe, shown }), location: null };
      };
    case 'stream':
      return (value, calls, by) => {
        if (!isPieces(value)) throw wrong('an iterable of strings or Uint8Arrays', value);
        const stream = contentStream(value, { by, turns, ...calls });
        return { media, stream, location: null, content: stream };
      };
    case 'redirect':
      return (value) => {
        if (typeof value !== 'string' || !isLocation(value))
          throw wrong('a URI reference of ASCII characters', value);
        return { ...noContent, location: value };
      };
  }
}

function jsonOutput(schema: TSchema, named: string): ReadOutput {
  const root = schema as object as SchemaNode;
  let compiled: CompiledSchema | undefined;
  return (value) => {
    compiled ??= new CompiledSchema(root);
    const doc: string | undefined = JSON.stringify(value);
    // Dates, and members without a value, are others in JSON, which is what the schema describes.
    const told: unknown = doc === undefined ? undefined : JSON.parse(doc);
    const faults =
      doc === undefined || compiled.check(told) ? [] : compiled.faultsOf(root, told, faultsShownMax);
    compiled.forget();
    if (doc === undefined || faults.length > 0) {
      const what = faults.map(({ pointer, message }) => `${pointer} ${message}`.trim()).join('; ');
      throw new FunctionFailed(
        `${named} returned what its output does not describe: ${what || shown(value)}`,
      );
    }
    return { location: null, content: doc };
  };
}

const printable = /^[\x21-\x7e]+$/;

function isLocation(text: string): boolean {
  return printable.test(text) && URL.canParse(text, 'http://localhost/');
}

function isPieces(value: unknown): value is Pieces {
  return (
    typeof value === 'object' && value !== null && (Symbol.asyncIterator in value || Symbol.iterator in value)
  );
}

function shown(value: unknown): string {
  if (value === undefined || value === null) return String(value);
  return Array.isArray(value) ? 'a list' : `a ${typeof value}`;
}

/** Longer pieces are sent in parts, so that a slow client does not make the program hold a whole one. */
const partBytesMax = 16 * 1024;

/**
 * Reads the next piece when the client has received most of the last one. The generator ends with the response: if the client leaves before,
 * `return` has it run its `finally`.
 */
function contentStream(
  pieces: Pieces,
  { by, turns, onBegin, onEnd }: Omit<Sending, 'ready' | 'isOver'> & StreamCalls,
): ContentStream {
  return {
    open(sink) {
      onBegin(sink.memory);
      const iterator =
        Symbol.asyncIterator in pieces ? pieces[Symbol.asyncIterator]() : pieces[Symbol.iterator]();
      let hasLeft = false;
      let wake = (): void => undefined;
      sink.onReady(() => wake());
      const ready = (): Promise<void> => {
        const { promise, resolve } = Promise.withResolvers<void>();
        wake = resolve;
        return promise;
      };
      void send(sink, iterator, { by, turns, ready, isOver: () => hasLeft }).finally(onEnd);
      return () => {
        hasLeft = true;
        wake();
        onEnd();
        // At once: an iterator that waits for what may never come is to stop waiting.
        void end(iterator, by);
      };
    },
  };
}

type Sending = {
  readonly by: RunningFunction;
  readonly turns: LoopTurns;
  readonly ready: () => Promise<void>;
  readonly isOver: () => boolean;
};

type Iterators = AsyncIterator<string | Uint8Array> | Iterator<string | Uint8Array>;

async function send(
  sink: ContentSink,
  iterator: Iterators,
  { by, turns, ready, isOver }: Sending,
): Promise<void> {
  const { named } = by;
  const take = () => callAs(by, () => iterator.next());
  try {
    for (let next = await take(); next.done !== true; next = await take()) {
      const { value } = next;
      if (typeof value !== 'string' && !(value instanceof Uint8Array))
        throw new FunctionFailed(`${named} must yield strings or Uint8Arrays, and yielded ${shown(value)}`);
      const bytes = typeof value === 'string' ? Buffer.from(value) : value;
      for (let at = 0; at < bytes.length && !isOver(); at += partBytesMax) {
        const isTaken = sink.write(bytes.subarray(at, at + partBytesMax));
        if (!isTaken && !isOver()) await ready();
      }
      await turns.next();
      if (isOver()) return;
    }
    sink.end();
  } catch (error) {
    // A client that has left is the usual cause then.
    if (isOver()) return;
    sink.fail(new FunctionFailed(`the stream of ${named} failed`, { cause: error }));
    await end(iterator, by);
  }
}

/** Ignores what the iterator throws, because the response has ended. */
async function end(iterator: Iterators, by: RunningFunction): Promise<void> {
  try {
    await callAs(by, () => iterator.return?.());
  } catch {
    // See above.
  }
}
