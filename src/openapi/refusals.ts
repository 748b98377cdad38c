/**
 * Refusals as responses (§2.2, §7): for each status, the codes with which an operation can be refused, in both forms of
 * the error body, each with an example from the registry.
 */
import { problemBody, problemDetailsBody, problemStatus } from '../http/problem.ts';
import { type ProblemCode, problems } from '../http/problem-registry.ts';
import { type FieldName, type ResponseField, responseFields } from '../http/response-fields.ts';
import { allowanceFields, refusalFields } from '../kernel/answer/respond.ts';
import type { Item, OwnCode } from '../kernel/documentation.ts';
import { type Components, ref } from './components.ts';
import type { Traits } from './traits.ts';

/** Codes with which the server ends any operation before or after the graph. */
const everywhere: readonly ProblemCode[] = [
  'message_invalid',
  'request_timeout',
  'fields_too_large',
  'internal',
  'unavailable',
  'version_unsupported',
];

/** An operation, as far as its refusals depend on it. */
export type Refused = {
  readonly traits: Traits;
  readonly constantFields?: readonly FieldName[] | undefined;
  /** Accept-* fields of its 415. */
  readonly accepts?: readonly FieldName[] | undefined;
  /** Codes that the application refuses with. */
  readonly ownCodes?: readonly OwnCode[] | undefined;
  /** Members of its 409 that count dependants. */
  readonly counts?: readonly string[] | undefined;
};

export function refusals(codes: Iterable<ProblemCode>, refused: Refused, components: Components): Item {
  const byStatus = new Map<number, ProblemCode[]>();
  for (const code of new Set([...codes, ...everywhere])) {
    byStatus.set(problemStatus(code), [...(byStatus.get(problemStatus(code)) ?? []), code]);
  }
  for (const { status } of refused.ownCodes ?? []) byStatus.set(status, byStatus.get(status) ?? []);
  return Object.fromEntries(
    [...byStatus].map(([status, raised]) => [
      String(status),
      refusal(status, raised.sort(), refused, components),
    ]),
  );
}

function refusal(
  status: number,
  codes: readonly ProblemCode[],
  { traits, constantFields = [], accepts = [], ownCodes = [], counts: all = [] }: Refused,
  components: Components,
): Item {
  // A response to HEAD is described with fields and without content.
  const headOnly = traits.method === 'HEAD';
  const demanded = [...refusalFields(status, codes), ...(status === 415 ? accepts : [])];
  const fields = [...new Set([...demanded, ...rateFields(traits, status), ...constantFields])].sort();
  const own = ownCodes.filter((each) => each.status === status).map(({ code }) => code);
  const name = `${(reasonPhrases[status] ?? 'Refused').replaceAll(' ', '')}${headOnly ? '.head' : ''}`;
  const counts = codes.includes('dependants_exist') ? all : [];
  const raised = { codes, own, counts };
  return components.intern('responses', name, { raised, fields }, () => ({
    description: describe(raised),
    headers: fieldItems(fields, components),
    ...(headOnly ? {} : { content: contentOf(raised, components) }),
  }));
}

type Raised = {
  readonly codes: readonly ProblemCode[];
  readonly own: readonly string[];
  readonly counts: readonly string[];
};

function describe({ codes, own }: Raised): string {
  const meanings = codes.map((code) => `\`${code}\`: ${problems[code].meaning}`);
  return [...own.map((code) => `\`${code}\``), ...meanings].join('\n\n');
}

function contentOf(raised: Raised, components: Components): Item {
  return {
    'application/json': body('Error', raised, components),
    'application/problem+json': body('ProblemDetails', raised, components),
  };
}

function body(
  schema: 'Error' | 'ProblemDetails',
  { codes, own, counts }: Raised,
  components: Components,
): Item {
  const all = [...own, ...codes];
  const members = {
    // A function may refuse with a code that nothing declares.
    code: codes.includes('refused_by_application')
      ? { type: 'string' }
      : all.length === 1
        ? { const: all[0] }
        : { enum: all },
    ...Object.fromEntries(counts.map((name) => [name, { type: 'integer', minimum: 0 }])),
  };
  return {
    schema: { allOf: [ref('schemas', schema), { type: 'object', properties: members }] },
    examples: Object.fromEntries(codes.map((code) => [code, exampleOf(schema, code, components)])),
  };
}

function exampleOf(schema: 'Error' | 'ProblemDetails', code: ProblemCode, components: Components): Item {
  const details = schema === 'ProblemDetails';
  return components.once('examples', `${details ? 'problem' : 'error'}.${code}`, () => ({
    value: JSON.parse(details ? problemDetailsBody({ code }) : problemBody({ code })) as unknown,
  }));
}

/** Statuses of responses before the rate limit is checked, and of failures. */
const uncountedStatuses: ReadonlySet<number> = new Set([408, 414, 417, 431, 500, 501, 505]);

/** The fields about the rate limit that applied to the request. */
export function rateFields(
  { method, unlimited }: Pick<Traits, 'method' | 'unlimited'>,
  status: number,
): readonly FieldName[] {
  if (method === 'OPTIONS' || method === 'TRACE' || uncountedStatuses.has(status)) return [];
  // A bad credential counts at every resource.
  return unlimited && status !== 401 && status !== 429 ? [] : allowanceFields;
}

/** Returns references to the fields, sorted by name, and stores each among the components. */
export function fieldItems(names: readonly FieldName[], components: Components): Item {
  const sorted = [...new Set<FieldName>([...names, 'API-Version', 'X-Content-Type-Options'])].sort();
  return Object.fromEntries(
    sorted.map((name) => [name, components.once('headers', name, () => fieldItem(responseFields[name]))]),
  );
}

function fieldItem({ description, type, example }: ResponseField): Item {
  return { description, schema: { type: type ?? 'string' }, ...(example === undefined ? {} : { example }) };
}

export function addErrorSchemas(components: Components): void {
  const members = {
    error: { type: 'string', description: 'Message for people.' },
    code: {
      anyOf: [{ enum: Object.keys(problems) }, { type: 'string' }],
      description: 'Stable code for programs: one of Comity, or one of the application itself.',
    },
    errors: {
      type: 'array',
      description: 'The errors in the content.',
      items: {
        type: 'object',
        properties: {
          pointer: { type: 'string', description: 'JSON Pointer to the member (RFC 6901).' },
          message: { type: 'string' },
        },
        required: ['pointer', 'message'],
      },
    },
  };
  components.add('schemas', 'Error', {
    description: 'An error. Some codes add members.',
    type: 'object',
    properties: members,
    required: ['error', 'code'],
  });
  components.add('schemas', 'ProblemDetails', {
    description: 'An error as RFC 9457 defines it, for `Accept: application/problem+json`.',
    type: 'object',
    properties: {
      type: { type: 'string', format: 'uri-reference', description: 'URI of the description of the code.' },
      title: { type: 'string' },
      status: { type: 'integer' },
      detail: { type: 'string' },
      ...members,
    },
    required: ['type', 'title', 'status', 'detail', 'error', 'code'],
  });
}

export const reasonPhrases: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  402: 'Payment Required',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  406: 'Not Acceptable',
  408: 'Request Timeout',
  409: 'Conflict',
  410: 'Gone',
  412: 'Precondition Failed',
  413: 'Content Too Large',
  414: 'URI Too Long',
  415: 'Unsupported Media Type',
  417: 'Expectation Failed',
  422: 'Unprocessable Content',
  423: 'Locked',
  424: 'Failed Dependency',
  428: 'Precondition Required',
  429: 'Too Many Requests',
  431: 'Request Header Fields Too Large',
  451: 'Unavailable For Legal Reasons',
  500: 'Internal Server Error',
  501: 'Not Implemented',
  503: 'Service Unavailable',
  505: 'HTTP Version Not Supported',
  507: 'Insufficient Storage',
};
