/**
 * Builds one operation of the document from its `Traits` and its texts: parameters, content, and a response for every
 * status with which the decision graph or the server can end it.
 */
import { type AnswerName, answers } from '../http/conduct/answers.ts';
import type { Content, Item, OwnCode, SchemeName } from '../kernel/documentation.ts';
import type { Components } from './components.ts';
import { refusals } from './refusals.ts';
import { answerFields, type FieldName, fieldItems, rateFields } from './response-fields.ts';
import { endsOf, type Traits } from './traits.ts';

export type Description = {
  readonly id: string;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  readonly traits: Traits;
  readonly deprecated?: boolean;
  /** Without the request header fields, which the traits determine. */
  readonly parameters?: readonly Item[];
  readonly preferences?: readonly string[];
  readonly requestContent?: Content;
  /** Content by response; a response that is missing here has none. */
  readonly content?: Readonly<Partial<Record<AnswerName, Content>>>;
  readonly representationFields?: readonly FieldName[];
  /** Fields of the response to a change, and of a 303 to a read. */
  readonly madeFields?: readonly FieldName[];
  readonly constantFields?: readonly FieldName[];
  /** Accept-* fields of its 415. */
  readonly accepts?: readonly FieldName[];
  /** Codes that the application refuses with. */
  readonly ownCodes?: readonly OwnCode[];
  /** Members of its 409 that count dependants. */
  readonly counts?: readonly string[];
  /** The schemes that it accepts; undefined: all. */
  readonly schemes?: readonly SchemeName[];
};

export type OperationSetting = {
  readonly components: Components;
  /** Requirements of the document's schemes, without the empty alternative. */
  readonly security: readonly Item[];
  readonly verifiedEmailRequired: boolean;
};

export function operationItem(described: Description, setting: OperationSetting): Item {
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
      ...refusals(ends.refusals, {
        components,
        accepts: described.accepts ?? [],
        constantFields: described.constantFields ?? [],
        traits,
        counts: described.counts ?? [],
        own: described.ownCodes ?? [],
      }),
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
  const own = {
    representation: described.representationFields ?? [],
    made: described.madeFields ?? [],
    constant: described.constantFields ?? [],
  };
  const gathered = new Map<number, { meanings: string[]; fields: FieldName[]; content: Content }>();
  for (const name of Object.keys(answers) as AnswerName[]) {
    if (!names.has(name)) continue;
    const { status, meaning } = answers[name];
    const entry = gathered.get(status) ?? { meanings: [], fields: [...own.constant], content: {} };
    entry.meanings.push(meaning);
    entry.fields.push(...answerFields(name, described.traits, own), ...rateFields(described.traits, status));
    const content = described.traits.method === 'HEAD' ? {} : (described.content?.[name] ?? {});
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
