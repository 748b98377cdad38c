/**
 * Refusals as responses (§2.2, §7): for each status, the codes with which an operation can be refused, in both forms of
 * the error body, each with an example from the registry.
 */
import { problemBody, problemDetailsBody, problemStatus } from '../http/problem.ts';
import { type ProblemCode, problems } from '../http/problem-registry.ts';
import type { Item, OwnCode } from '../kernel/documentation.ts';
import { type Components, ref } from './components.ts';

import { type FieldName, fieldItems, rateFields, refusalFields } from './response-fields.ts';
import type { Traits } from './traits.ts';

/** Codes with which the server ends any operation before or after the graph. */
export const everywhere: readonly ProblemCode[] = [
  'message_invalid',
  'request_timeout',
  'fields_too_large',
  'internal',
  'unavailable',
  'version_unsupported',
];

export type RefusalOptions = {
  readonly components: Components;
  /** Accept-* fields of the 415. */
  readonly accepts: readonly FieldName[];
  readonly constantFields: readonly FieldName[];
  /** A response to HEAD is described with fields and without content. */
  readonly traits: Pick<Traits, 'method' | 'unlimited'>;
  /** Members of a 409 body that count dependants. */
  readonly counts: readonly string[];
  /** Codes of the application. */
  readonly own: readonly OwnCode[];
};

export function refusals(codes: Iterable<ProblemCode>, options: RefusalOptions): Item {
  const byStatus = new Map<number, ProblemCode[]>();
  for (const code of new Set([...codes, ...everywhere])) {
    byStatus.set(problemStatus(code), [...(byStatus.get(problemStatus(code)) ?? []), code]);
  }
  for (const { status } of options.own) byStatus.set(status, byStatus.get(status) ?? []);
  return Object.fromEntries(
    [...byStatus].map(([status, raised]) => [String(status), refusal(status, raised.sort(), options)]),
  );
}

function refusal(status: number, codes: readonly ProblemCode[], options: RefusalOptions): Item {
  const { components, constantFields, accepts, traits } = options;
  const headOnly = traits.method === 'HEAD';
  const demanded = [...refusalFields(status, codes, accepts), ...rateFields(traits, status)];
  const fields = [...new Set([...demanded, ...constantFields])].sort();
  const own = options.own.filter((each) => each.status === status).map(({ code }) => code);
  const name = `${(reasonPhrases[status] ?? 'Refused').replaceAll(' ', '')}${headOnly ? '.head' : ''}`;
  const counts = codes.includes('dependants_exist') ? options.counts : [];
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
