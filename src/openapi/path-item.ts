/**
 * A path with its operations. HEAD, OPTIONS and, if enabled, TRACE, which the kernel answers for every resource (§4.3,
 * §4.8, §4.11), are said once, in the description of the document.
 *
 * `responses` has what a request gets that asks for nothing else. What a header field asks for (`Prefer: respond-async`,
 * `Accept: text/event-stream`) is under `x-responses`, by that field: clients are generated with the union of all 2xx as
 * the type of an answer, which an operation in place of the resource would spoil
 * (docs/decisions/0104-the-document-is-the-applications.md).
 */

import { type AnswerName, answers } from '../http/conduct/answers.ts';
import type { FieldName } from '../http/response-fields.ts';
import { answerEnds } from '../kernel/answer/respond.ts';
import type { Content, Item, OperationDocumentation, SchemeName } from '../kernel/documentation.ts';
import type { Components } from './components.ts';
import { fieldItems, type Refused, refusal } from './refusals.ts';
import { endsOf, type Traits } from './traits.ts';

export type PathDescription = {
  readonly path: string;
  readonly parameters?: readonly Item[] | undefined;
  readonly operations: readonly Description[];
};

export function pathItem({ path, parameters, operations }: PathDescription, setting: OperationSetting): Item {
  if (operations.length === 0) throw new Error(`the path ${path} has no operation`);
  const items = operations.map((operation) => {
    return [operation.traits.method.toLowerCase(), operationItem(operation, setting)] as const;
  });
  return { ...(parameters === undefined ? {} : { parameters }), ...Object.fromEntries(items) };
}

// Builds one operation of the document from its `Traits` and its texts: parameters, content, and a response for every
// answer with which the decision graph can end it.
//

export type Description = Refused & {
  readonly traits: Traits;
  readonly id: string;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string | undefined;
  readonly audience?: 'operator' | undefined;
  readonly action?: OperationDocumentation['action'];
  readonly deprecated?: boolean | undefined;
  /** Fields of every response. */
  readonly constantFields?: readonly FieldName[] | undefined;
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

export type OperationSetting = {
  readonly components: Components;
  /** Requirements of the document's schemes, without the empty alternative. */
  readonly security: readonly Item[];
  readonly verifiedEmailRequired: boolean;
};

function operationItem(described: Description, setting: OperationSetting): Item {
  const { components } = setting;
  const { traits, parameters = [], requestContent, schemes } = described;
  const ends = endsOf(traits, setting.verifiedEmailRequired);
  const security = schemes?.map((name) => ({ [name]: [] })) ?? setting.security;
  const allParameters = [...parameters, ...requestFields(described, components)];
  const refused = refusal(ends.refusals, described, components);
  const asked = [...ends.asked].map(([field, names]) => [field, answerItems(described, names, components)]);
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
    responses: {
      ...answerItems(described, ends.answers, components),
      default: refused.response,
    },
    ...(described.action === undefined ? {} : { 'x-action': described.action }),
    'x-errors': refused.errors,
    ...(asked.length === 0 ? {} : { 'x-responses': Object.fromEntries(asked) }),
    ...(traits.gate.anonymous ? { security: [{}, ...security] } : schemes === undefined ? {} : { security }),
  };
}

/** Answers with the same status are one response. */
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
    entry.fields.push(...answerEnds[name].fields(answering));
    gathered.set(status, { ...entry, content: { ...entry.content, ...described.content?.[name] } });
  }
  return Object.fromEntries(
    [...gathered].map(([status, { meanings, fields, content }]) => {
      const headers = fieldItems(fields, components);
      return [
        String(status),
        {
          description: meanings.join('\n\n'),
          ...(Object.keys(headers).length === 0 ? {} : { headers }),
          ...(Object.keys(content).length === 0 ? {} : { content }),
        },
      ];
    }),
  );
}

// The request header fields that an operation reads, as parameters. Accept, Content-Type and Authorization are left
// out: OpenAPI (Parameter Object, `in`) ignores them as parameters and has media types and security schemes instead; and
// so are Accept-Encoding and Content-Encoding, which HTTP libraries set for any resource.

type Name =
  | 'If-Match'
  | 'If-Modified-Since'
  | 'If-None-Match'
  | 'If-Range'
  | 'If-Unmodified-Since'
  | 'Idempotency-Key'
  | 'Last-Event-ID'
  | 'Range'
  | 'Want-Repr-Digest';

const described: Readonly<
  Record<Name, { readonly description: string; readonly example: string; readonly schema?: Item }>
> = {
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
  'If-Range': {
    description:
      'Applies Range only if the current entity tag is this (strong comparison); otherwise the whole representation is sent.',
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
  Range: {
    description:
      'Octets of the representation (RFC 9110 §14.2): 206 with them, or 416 if there are none. Several ranges are answered with multipart/byteranges, more than 16 apart with the whole.',
    example: 'bytes=0-499',
  },
  'Want-Repr-Digest': {
    description: 'Asks for Repr-Digest, which has sha-256 (RFC 9530).',
    example: 'sha-256=1',
  },
};

/** Returns references to the parameters, which are stored among the components. */
function requestFields(
  { traits, preferences = [], representationFields = [] }: Description,
  components: Components,
): readonly Item[] {
  const names: Name[] = [];
  const safe = traits.method === 'GET' || traits.method === 'QUERY';
  // Of the conditions that any request may have, those that clients have a use for: to read what changed, and to change what was read.
  const dated = traits.validators === 'tag-and-date';
  if (traits.validators !== 'none' && safe) names.push('If-None-Match');
  if (dated && safe) names.push('If-Modified-Since');
  if (dated && !safe) names.push('If-Match', 'If-Unmodified-Since');
  if (dated && traits.creates === 'sometimes') names.push('If-None-Match');
  if (traits.idempotent) names.push('Idempotency-Key');
  if (traits.streams) names.push('Last-Event-ID');
  if (traits.ranges && traits.method === 'GET') names.push('Range', 'If-Range');
  if (representationFields.includes('Repr-Digest')) names.push('Want-Repr-Digest');
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
