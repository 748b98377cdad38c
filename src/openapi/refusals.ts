/**
 * Refusals (§2.2, §7): one response, `default`, for all operations, which keeps the document short and gives generated
 * clients one type for errors (docs/decisions/0104-the-document-is-the-applications.md). The codes with which an operation
 * can be refused are under `x-errors`, by their statuses: those of any operation at the response, the others at the operation.
 */
import { problemStatus } from '../http/problem.ts';
import { type ProblemCode, problems } from '../http/problem-registry.ts';
import { type FieldName, type ResponseField, responseFields } from '../http/response-fields.ts';
import { allowanceFields, refusalFields } from '../kernel/answer/respond.ts';
import type { Item, OwnCode } from '../kernel/documentation.ts';
import { listFields } from '../resources/collection/list-answer.ts';
import { type Components, ref } from './components.ts';
import { endsOf, plainRead, type Traits } from './traits.ts';

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
  /** Codes that the application refuses with. */
  readonly ownCodes?: readonly OwnCode[] | undefined;
  /** Members of its 409 that count dependants. */
  readonly counts?: readonly string[] | undefined;
};

/** @returns the members `responses.default` and `x-errors` of an operation */
export function refusal(
  codes: ReadonlySet<ProblemCode>,
  { ownCodes = [], counts = [] }: Refused,
  components: Components,
): { readonly response: Item; readonly errors: Item } {
  const all = new Set([...codes, ...everywhere]);
  // A request that is judged by its signature has no credential that could be refused.
  const kind = kindsOfOperations().find(({ general }) => all.isSupersetOf(general));
  const errors = errorsOf(kind === undefined ? all : all.difference(kind.general), ownCodes);
  const counted = all.has('dependants_exist') ? counts : [];
  const make = () => errorResponse(kind === undefined ? {} : errorsOf(kind.general), counted);
  const isShared = kind !== undefined && counted.length === 0;
  return { response: isShared ? components.once('responses', kind.name, make) : make(), errors };
}

/** Codes of every operation that takes content and may change something, and of every other that takes credentials. */
function kindsOfOperations(): readonly {
  readonly name: string;
  readonly general: ReadonlySet<ProblemCode>;
}[] {
  const generalOf = (traits: Partial<Traits>) => {
    const { refusals } = endsOf({ ...plainRead, validators: 'none', ...traits }, false);
    return new Set([...refusals, ...everywhere]);
  };
  return [
    { name: 'ContentError', general: generalOf({ method: 'POST', contentTypes: ['application/json'] }) },
    { name: 'Error', general: generalOf({}) },
  ];
}

function errorsOf(codes: ReadonlySet<ProblemCode>, ownCodes: readonly OwnCode[] = []): Item {
  const raised = [...[...codes].sort().map((code) => ({ code, status: problemStatus(code) })), ...ownCodes];
  const byStatus = [...Map.groupBy(raised, ({ status }) => status)].sort(([one], [other]) => one - other);
  return Object.fromEntries(byStatus.map(([status, found]) => [status, found.map(({ code }) => code)]));
}

/** @param counts members that come with one code */
function errorResponse(errors: Item, counts: readonly string[] = []): Item {
  const properties = Object.fromEntries(counts.map((name) => [name, { type: 'integer', minimum: 0 }]));
  const schemaOf = (name: string) =>
    counts.length === 0
      ? ref('schemas', name)
      : { allOf: [ref('schemas', name), { type: 'object', properties }] };
  return {
    description: 'An error; `code` tells which.',
    content: {
      'application/json': { schema: schemaOf('Error') },
      'application/problem+json': { schema: schemaOf('ProblemDetails') },
    },
    ...(Object.keys(errors).length === 0 ? {} : { 'x-errors': errors }),
  };
}

/** Fields that any response may have. */
const commonFields: ReadonlySet<FieldName> = new Set([
  ...(['API-Version', 'Accept-Ranges', 'Cache-Control', 'Content-Encoding', 'Content-Location'] as const),
  ...(['ETag', 'Last-Modified', 'Preference-Applied', 'Vary', 'X-Content-Type-Options'] as const),
  ...listFields,
  ...allowanceFields,
]);

/** The fields that any response, or any refusal, may have: the document describes them once, beside its paths. */
export function generalFields(further: readonly FieldName[]): Item {
  const names = [...new Set([...commonFields, ...refusalFields, ...further])].sort();
  return Object.fromEntries(names.map((name) => [name, fieldItem(responseFields[name])]));
}

/** Returns references to the fields beside the common ones, sorted by name, and stores each among the components. */
export function fieldItems(names: readonly FieldName[], components: Components): Item {
  const sorted = [...new Set(names)].filter((name) => !commonFields.has(name)).sort();
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
    code: components.add('schemas', 'ErrorCode', {
      anyOf: [{ enum: Object.keys(problems) }, { type: 'string' }],
      description: 'Stable code for programs: one of Comity, or one of the application itself.',
    }),
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
  416: 'Range Not Satisfiable',
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
