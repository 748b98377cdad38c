/**
 * A path with its operations. The kernel answers HEAD, OPTIONS and, if enabled, TRACE for every resource (§4.3, §4.8,
 * §4.11), so they are described here.
 */

import { type AnswerName, answers } from '../http/conduct/answers.ts';
import type { FieldName } from '../http/response-fields.ts';
import { acceptFields, answerEnds } from '../kernel/answer/respond.ts';
import type { Content, Item, SchemeName } from '../kernel/documentation.ts';
import type { Components } from './components.ts';
import { fieldItems, type Refused, rateFields, refusals } from './refusals.ts';
import { endsOf, plainRead, type Traits } from './traits.ts';

export type PathDescription = {
  readonly path: string;
  /** `Products`: suffix of the operation ids of HEAD, OPTIONS and TRACE. */
  readonly name: string;
  /** Name of the path in summaries: `the products`. */
  readonly noun: string;
  readonly parameters?: readonly Item[] | undefined;
  readonly operations: readonly Description[];
};

export type Setting = OperationSetting & {
  readonly traceEnabled: boolean;
  /** Fields of cross-origin responses, if any origin is allowed. */
  readonly corsFields: readonly FieldName[];
};

export function pathItem(described: PathDescription, setting: Setting): Item {
  const [first] = described.operations;
  if (first === undefined) throw new Error(`the path ${described.path} has no operation`);
  const all = [...described.operations, ...kernelOperations(described, first, setting.traceEnabled)];
  const operations = all.map((operation) => {
    const constantFields = [...(operation.constantFields ?? []), ...setting.corsFields];
    const accepts = acceptNames(described.operations, operation.traits.method);
    const item = operationItem({ ...operation, accepts, constantFields }, setting);
    return [operation.traits.method.toLowerCase(), item] as const;
  });
  return {
    ...(described.parameters === undefined ? {} : { parameters: described.parameters }),
    ...Object.fromEntries(operations),
  };
}

function kernelOperations(
  { name, noun, operations }: PathDescription,
  { tag, deprecated = false, constantFields = [] }: Description,
  traceEnabled: boolean,
): readonly Description[] {
  const found: Description[] = [];
  const get = operations.find(({ traits }) => traits.method === 'GET');
  if (get !== undefined) {
    const traits = { ...get.traits, method: 'HEAD', streams: false };
    found.push({ ...get, id: `head${name}`, summary: `Read only the header fields of ${noun}`, traits });
  }
  const traits = { ...plainRead, method: 'OPTIONS', validators: 'none' } as const;
  found.push({
    tag,
    deprecated,
    id: `options${name}`,
    summary: `List the methods of ${noun}`,
    description:
      'Requires no credential. With Origin and Access-Control-Request-Method it is a cross-origin preflight request.',
    traits,
    constantFields: [...constantFields, ...optionsFields(operations)],
  });
  if (traceEnabled) {
    found.push({
      tag,
      deprecated,
      id: `trace${name}`,
      summary: 'Echo the request as received',
      description: 'Leaves out fields that carry credentials.',
      traits: { ...traits, method: 'TRACE' },
      content: { trace: traceContent },
    });
  }
  return found;
}

const traceContent: Content = { 'message/http': { schema: { type: 'string' } } };

function optionsFields(operations: readonly Description[]): readonly FieldName[] {
  const accepts = acceptNames(operations, 'OPTIONS');
  return accepts.length === 0 ? [] : [...accepts, 'Max-Content-Length'];
}

function acceptNames(operations: readonly Description[], method: string): readonly FieldName[] {
  const typesOf = (name: string) => {
    const types = operations.find(({ traits }) => traits.method === name)?.traits.contentTypes ?? [];
    return types.length === 0 ? undefined : types;
  };
  return acceptFields(method, typesOf).map(([field]) => field);
}

// Builds one operation of the document from its `Traits` and its texts: parameters, content, and a response for every
// status with which the decision graph or the server can end it.
//

export type Description = Refused & {
  readonly id: string;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string | undefined;
  readonly deprecated?: boolean | undefined;
  /** Without the request header fields, which the traits determine. */
  readonly parameters?: readonly Item[] | undefined;
  readonly preferences?: readonly string[] | undefined;
  readonly requestContent?: Content | undefined;
  /** Content by response; a response that is missing here has none. */
  readonly content?: Readonly<Partial<Record<AnswerName, Content>>> | undefined;
  readonly representationFields?: readonly FieldName[] | undefined;
  /** Fields of the response to a change, and of a 303 to a read. */
  readonly madeFields?: readonly FieldName[] | undefined;
  /** The schemes that it accepts; undefined: all. */
  readonly schemes?: readonly SchemeName[] | undefined;
};

type OperationSetting = {
  readonly components: Components;
  /** Requirements of the document's schemes, without the empty alternative. */
  readonly security: readonly Item[];
  readonly verifiedEmailRequired: boolean;
};

function operationItem(described: Description, setting: OperationSetting): Item {
  const { components } = setting;
  const { traits, parameters = [], preferences = [], requestContent } = described;
  const ends = endsOf(traits, setting.verifiedEmailRequired);
  const security = described.schemes?.map((name) => ({ [name]: [] })) ?? setting.security;
  const allParameters = [...parameters, ...requestFields(traits, preferences, components)];
  return {
    operationId: described.id,
    tags: [described.tag],
    summary: described.summary,
    ...(described.description === undefined ? {} : { description: described.description }),
    ...(described.deprecated === true ? { deprecated: true } : {}),
    ...(allParameters.length === 0 ? {} : { parameters: allParameters }),
    ...(requestContent === undefined
      ? {}
      : { requestBody: { required: !traits.contentOptional, content: requestContent } }),
    responses: byStatus({
      ...answerItems(described, ends.answers, components),
      ...refusals(ends.refusals, described, components),
    }),
    security: traits.gate.anonymous ? [{}, ...security] : security,
  };
}

/** Responses with the same status are merged: a stream and a representation are both 200. */
function answerItems(
  described: Description,
  names: ReadonlySet<AnswerName>,
  components: Components,
): Record<string, Item> {
  const { traits, representationFields = [], madeFields = [], constantFields = [] } = described;
  const answering = { ...traits, representationFields, madeFields };
  const gathered = new Map<number, { meanings: string[]; fields: FieldName[]; content: Content }>();
  for (const name of Object.keys(answers) as AnswerName[]) {
    if (!names.has(name)) continue;
    const { status, meaning } = answers[name];
    const entry = gathered.get(status) ?? { meanings: [], fields: [...constantFields], content: {} };
    entry.meanings.push(meaning);
    entry.fields.push(...answerEnds[name].fields(answering), ...rateFields(traits, status));
    const content = traits.method === 'HEAD' ? {} : (described.content?.[name] ?? {});
    gathered.set(status, { ...entry, content: { ...entry.content, ...content } });
  }
  return Object.fromEntries(
    [...gathered].map(([status, { meanings, fields, content }]) => [
      String(status),
      {
        description: meanings.join('\n\n'),
        headers: fieldItems(fields, components),
        ...(Object.keys(content).length === 0 ? {} : { content }),
      },
    ]),
  );
}

function byStatus(responses: Record<string, unknown>): Item {
  return Object.fromEntries(Object.entries(responses).sort(([a], [b]) => Number(a) - Number(b)));
}

// The request header fields that an operation reads, as parameters. Accept, Content-Type and Authorization are left
// out: OpenAPI (Parameter Object, `in`) ignores them as parameters and has media types and security schemes instead.

type Name =
  | 'Accept-Encoding'
  | 'Content-Encoding'
  | 'If-Match'
  | 'If-Modified-Since'
  | 'If-None-Match'
  | 'If-Unmodified-Since'
  | 'Idempotency-Key'
  | 'Last-Event-ID';

const described: Readonly<
  Record<Name, { readonly description: string; readonly example: string; readonly schema?: Item }>
> = {
  'Accept-Encoding': {
    description:
      'Content codings that the client accepts; Comity uses `br` and `gzip` for longer representations.',
    example: 'br, gzip',
  },
  'Content-Encoding': {
    description: 'Coding of the content: `gzip`, `deflate`, `br` or `zstd`.',
    example: 'gzip',
  },
  'If-Match': {
    description:
      'Carries out the request only if the current entity tag is one of these (strong comparison); otherwise 412. `*`: only if the resource exists.',
    example: '"42"',
  },
  'If-Modified-Since': {
    description:
      'Answered 304 unless the resource changed after this time. Ignored if If-None-Match is sent.',
    example: 'Sat, 01 Aug 2026 09:30:00 GMT',
  },
  'If-None-Match': {
    description:
      'Carries out the request only if the current entity tag is none of these; otherwise 304 for a read, 412 for a change. `*` with PUT: only creates.',
    example: '"42"',
  },
  'If-Unmodified-Since': {
    description:
      'Carries out the request only if the resource has not changed after this time; otherwise 412. Ignored if If-Match is sent.',
    example: 'Sat, 01 Aug 2026 09:30:00 GMT',
  },
  'Idempotency-Key': {
    description:
      'A repeated request with the same key is carried out only once and gets the first response. A string of RFC 9651, in quotes.',
    example: '"8e03978e-40d5-43dd-bc93-6894a57f9324"',
    schema: { type: 'string', minLength: 1 },
  },
  'Last-Event-ID': {
    description: 'Id of the last event received: the stream resumes after it.',
    example: 'evt_01kabcdefghjkmnpqrstvwxyz0',
  },
};

/** Returns references to the parameters, which are stored among the components. */
function requestFields(
  traits: Traits,
  preferences: readonly string[],
  components: Components,
): readonly Item[] {
  const names: Name[] = [];
  const safe = traits.method === 'GET' || traits.method === 'HEAD' || traits.method === 'QUERY';
  if (traits.validators !== 'none') names.push('If-Match', 'If-None-Match');
  if (traits.validators === 'tag-and-date') names.push('If-Unmodified-Since');
  if (traits.validators === 'tag-and-date' && safe) names.push('If-Modified-Since');
  if (traits.idempotent) names.push('Idempotency-Key');
  if (traits.contentTypes.length > 0) names.push('Content-Encoding');
  if (safe) names.push('Accept-Encoding');
  if (traits.streams) names.push('Last-Event-ID');
  const parameters = names.map((name) => parameter(name, traits, components));
  return preferences.length === 0 ? parameters : [...parameters, prefer(preferences, components)];
}

function parameter(name: Name, traits: Traits, components: Components): Item {
  const { description, example, schema = { type: 'string' } } = described[name];
  const item = { name, in: 'header', description, schema, example };
  if (name !== 'If-Match' || !traits.matchRequired) return components.add('parameters', name, item);
  // A PUT that creates has nothing to match.
  const required = traits.creates === 'never';
  const demand = 'This collection requires it for changes: 428 without it.';
  return components.intern('parameters', 'If-Match.demanded', { required }, () => ({
    ...item,
    description: `${description} ${demand}`,
    required,
  }));
}

const preferenceMeanings: Readonly<Record<string, string>> = {
  'return=minimal': 'no content in the response',
  'return=representation': 'the representation in the response',
  'respond-async': '202 immediately, the change later',
  'count=exact': 'the length of the whole list in X-Total-Count',
  plan: 'how the list was read in Comity-Plan, for administrators',
  'wait=SECONDS': 'holds an empty page of the feed until something follows',
};

function prefer(preferences: readonly string[], components: Components): Item {
  const lines = preferences.map((preference) => `\`${preference}\`: ${preferenceMeanings[preference] ?? ''}`);
  return components.intern('parameters', 'Prefer', preferences, () => ({
    name: 'Prefer',
    in: 'header',
    description: `Preferences (RFC 7240), separated by commas. ${lines.join('; ')}.`,
    schema: { type: 'string' },
    example: preferences[0],
  }));
}
