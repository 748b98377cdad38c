/**
 * The header fields of responses: the meaning of each, and which response has which. Mirrors kernel/answer/;
 * test/openapi compares both over real responses.
 */
import type { AnswerName } from '../http/conduct/answers.ts';
import type { ProblemCode } from '../http/problem-registry.ts';
import type { Item } from '../kernel/documentation.ts';
import type { Components } from './components.ts';
import type { Traits } from './traits.ts';

type Described = {
  readonly description: string;
  readonly example?: string | number;
  readonly type?: 'integer';
};

const fields = {
  'API-Version': { description: 'Version of this API, in every response.', example: '1' },
  Accept: { description: 'Media types of content that the resource accepts with this method.' },
  'Accept-Encoding': {
    description: 'Content codings that Comity decodes.',
    example: 'gzip, deflate, br, zstd',
  },
  'Accept-Patch': { description: 'Media types that PATCH accepts here (RFC 5789).' },
  'Accept-Post': { description: 'Media types that POST accepts here.' },
  'Accept-Query': { description: 'Media types that QUERY accepts here, as a structured list (RFC 10008).' },
  'Accept-Ranges': { description: '`none`: Comity ignores Range (RFC 9110 §14.3).', example: 'none' },
  'Access-Control-Allow-Credentials': {
    description: '`true`: a page may send credentials.',
    example: 'true',
  },
  'Access-Control-Allow-Headers': { description: 'Request fields that a page may send.' },
  'Access-Control-Allow-Methods': { description: 'Methods that a page may use.' },
  'Access-Control-Allow-Origin': {
    description:
      'The origin that may read the response, or `*`. Absent if the origin of the request may not.',
  },
  'Access-Control-Expose-Headers': { description: 'Response fields that a page may read.' },
  'Access-Control-Max-Age': {
    description: 'Seconds for which a browser may cache the preflight response.',
    type: 'integer',
    example: 86400,
  },
  Allow: {
    description: 'Methods that the resource supports for this caller.',
    example: 'GET, HEAD, OPTIONS',
  },
  'Cache-Control': { description: 'How caches may store the response (RFC 9111).', example: 'no-cache' },
  'Comity-Position': {
    description:
      'A place in the event log that the list is not behind: `after` of the events reads or streams what happened since, without a gap.',
    example: 'rQkXo0c1i2v3b4n5m6k7j8h9g0f1d2s3a4WzEsMCw0MiwiXQ',
  },
  'Content-Disposition': {
    description: 'Tells a browser to save the content, and under which file name.',
    example: 'attachment; filename="rec_01k1jx7v2mh5s8b4c9d0e6f3ga"',
  },
  'Content-Encoding': {
    description: 'Coding of the content, for longer representations: the preferred one of Accept-Encoding.',
    example: 'br',
  },
  'Content-Location': { description: 'URI where a GET returns the representation in this response.' },
  'Content-Security-Policy': {
    description: 'Forbids a browser to run anything in the content.',
    example: "sandbox; default-src 'none'",
  },
  'Comity-Plan': {
    description:
      'How the list was read, with `Prefer: plan`, for administrators: a token and a sentence (RFC 9651). `index`, `one` and `nothing` cost what they return; `words`, `references`, `scan` and `groups` may cost more.',
    example: 'index;words="Walks the index of price in the order of the list: a page costs what it returns."',
  },
  Deprecation: {
    description: 'Time from which the resource is deprecated (RFC 9745).',
    example: '@1735689600',
  },
  ETag: {
    description: 'Strong validator of the representation, for If-Match and If-None-Match.',
    example: '"42"',
  },
  'Last-Modified': {
    description: 'Time of the last change of the resource.',
    example: 'Sat, 01 Aug 2026 09:30:00 GMT',
  },
  Link: {
    description:
      'Other pages of the list: `first`, `prev`, `next`, and `last` if it is known (RFC 8288); `deprecation` on deprecated resources.',
  },
  Location: { description: 'URI of the created resource, or target of the redirect.' },
  'Max-Content-Length': {
    description: 'Maximum length of request content in octets.',
    type: 'integer',
    example: 1_048_576,
  },
  'Preference-Applied': {
    description: 'The preferences of Prefer that Comity applied (RFC 7240).',
    example: 'return=minimal',
  },
  RateLimit: {
    description: 'Requests left, and seconds until the limit resets, if a limit applies.',
    example: '"reads";r=5999;t=60',
  },
  'RateLimit-Policy': {
    description: 'Requests that the caller may make within a number of seconds, if a limit applies.',
    example: '"reads";q=6000;w=60',
  },
  'Retry-After': { description: 'Seconds to wait before the next attempt.', type: 'integer', example: 1 },
  'Sec-WebSocket-Protocol': {
    description: 'The subprotocol, if the client offered it (RFC 6455).',
    example: 'comity.v1',
  },
  'Sec-WebSocket-Version': { description: 'The supported version (RFC 6455).', example: '13' },
  'Set-Cookie': {
    description: 'Sets or removes the session cookie.',
    example:
      '__Host-comity_session=ses_01k1jx7v2mh5s8b4c9d0e6f3ga.secret; Path=/; Max-Age=2592000; HttpOnly; Secure; SameSite=Lax',
  },
  Sunset: {
    description: 'Time from which the resource may be unavailable (RFC 8594).',
    example: 'Fri, 01 Jan 2027 00:00:00 GMT',
  },
  Upgrade: {
    description: 'The protocol that the connection changes to or, with 426, that the resource requires.',
    example: 'websocket',
  },
  Vary: { description: 'Request fields that the response depends on.', example: 'Accept, Accept-Encoding' },
  'WWW-Authenticate': {
    description: 'The accepted authentication schemes.',
    example: 'Bearer realm="comity"',
  },
  'X-Accel-Buffering': { description: '`no`: proxies must not buffer events.', example: 'no' },
  'X-Content-Type-Options': {
    description: '`nosniff`: browsers must treat the content as Content-Type says.',
    example: 'nosniff',
  },
  'X-RateLimit-Remaining': {
    description: 'Requests left, if a limit applies.',
    type: 'integer',
    example: 5999,
  },
  'X-Total-Count': {
    description: 'Number of resources in the whole list, with `Prefer: count=exact`.',
    type: 'integer',
    example: 137,
  },
} as const satisfies Record<string, Described>;

export type FieldName = keyof typeof fields;

/** Fields that an operation adds to those of the kernel. */
export type OwnFields = {
  /** In a 200 with a representation. */
  readonly representation: readonly FieldName[];
  /** In the response to a change, and in a 303 to a read: Set-Cookie. */
  readonly made: readonly FieldName[];
  /** In every response: Deprecation, Sunset, Link; CORS fields. */
  readonly constant: readonly FieldName[];
};

const rate: readonly FieldName[] = ['RateLimit', 'RateLimit-Policy', 'X-RateLimit-Remaining'];
/** Statuses of responses before the rate limit is checked, and of failures. */
const uncountedStatuses: ReadonlySet<number> = new Set([408, 414, 417, 431, 500, 501, 505]);

/** The fields about the rate limit that applied to the request. */
export function rateFields(
  { method, unlimited }: Pick<Traits, 'method' | 'unlimited'>,
  status: number,
): readonly FieldName[] {
  if (method === 'OPTIONS' || method === 'TRACE' || uncountedStatuses.has(status)) return [];
  // A bad credential counts at every resource.
  return unlimited && status !== 401 && status !== 429 ? [] : rate;
}

const read: readonly FieldName[] = [
  'Accept-Ranges',
  'Cache-Control',
  'Content-Encoding',
  'Preference-Applied',
  'Vary',
];
const change: readonly FieldName[] = ['Cache-Control', 'Content-Location', 'Preference-Applied'];

/** The fields of one response, without Date, Content-Type and Content-Length. */
export function answerFields(answer: AnswerName, traits: Traits, own: OwnFields): readonly FieldName[] {
  const tag: readonly FieldName[] = traits.validators === 'none' ? [] : ['ETag'];
  const validators: readonly FieldName[] =
    traits.validators === 'tag-and-date' ? [...tag, 'Last-Modified'] : tag;
  // The response to PUT has no validators: the server adds members to the content (RFC 9110 §9.3.4).
  const made: readonly FieldName[] =
    traits.method === 'PUT' || traits.contentTypes.length === 0 || traits.action
      ? []
      : ['ETag', 'Last-Modified'];
  switch (answer) {
    case 'representation':
      return [...read, ...validators, ...own.representation];
    case 'conversation':
      return ['Sec-WebSocket-Protocol', 'Upgrade'];
    case 'not_modified':
      return [
        'Cache-Control',
        'Vary',
        ...validators,
        ...own.representation.filter((name) => name === 'Comity-Position'),
        ...(traits.method === 'QUERY' ? (['Location'] as const) : []),
      ];
    case 'see_other':
    case 'repeat_elsewhere':
    case 'moved':
    case 'created_see_other':
      return ['Cache-Control', 'Location', ...own.made];
    case 'accepted':
      return ['Cache-Control', 'Location', 'Preference-Applied'];
    case 'queued':
    case 'created':
      // The response of an action is a report, not the representation at Location.
      return traits.action
        ? ['Cache-Control', 'Preference-Applied', 'Location', ...own.made]
        : [...change, 'Location', ...made, ...own.made];
    case 'changed':
      return (traits.method === 'PATCH' || traits.method === 'PUT') && !traits.action
        ? [...change, ...made]
        : ['Cache-Control', 'Preference-Applied', ...own.made];
    case 'changed_silently':
      return traits.method === 'PATCH' && !traits.action
        ? ['Preference-Applied', ...made]
        : ['Preference-Applied', ...own.made];
    case 'deleted':
      return ['Preference-Applied'];
    case 'deleted_representation':
      return ['Cache-Control', 'Preference-Applied'];
    case 'stream':
      return ['Cache-Control', 'Vary', 'X-Accel-Buffering'];
    case 'trace':
      return ['Cache-Control'];
    case 'options':
    case 'server_options':
      return ['Allow'];
    case 'preflight':
      return [
        'Allow',
        'Vary',
        'Access-Control-Allow-Origin',
        'Access-Control-Allow-Credentials',
        'Access-Control-Allow-Methods',
        'Access-Control-Allow-Headers',
        'Access-Control-Max-Age',
      ];
  }
}

/** The fields that a status requires in a refusal, as in kernel/answer/respond.ts. */
export function refusalFields(
  status: number,
  codes: readonly ProblemCode[],
  accepts: readonly FieldName[],
): readonly FieldName[] {
  const demanded: FieldName[] = ['Cache-Control', 'Vary'];
  if (status === 401) demanded.push('WWW-Authenticate');
  if (status === 412) demanded.push('ETag');
  if (status === 426) demanded.push('Upgrade');
  if (codes.includes('handshake_invalid')) demanded.push('Sec-WebSocket-Version');
  if (status === 415) demanded.push(...accepts, 'Accept-Encoding');
  if (codes.includes('idempotency_result_sealed')) demanded.push('Location');
  if (status === 429 || status === 503 || codes.includes('idempotency_key_in_use'))
    demanded.push('Retry-After');
  return demanded;
}

/** Returns references to the fields, sorted by name, and stores each among the components. */
export function fieldItems(names: readonly FieldName[], components: Components): Item {
  const sorted = [...new Set<FieldName>([...names, 'API-Version', 'X-Content-Type-Options'])].sort();
  return Object.fromEntries(
    sorted.map((name) => [name, components.once('headers', name, () => fieldItem(name))]),
  );
}

function fieldItem(name: FieldName): Item {
  const { description, type, example }: Described = fields[name];
  return {
    description,
    schema: { type: type ?? 'string' },
    ...(example === undefined ? {} : { example }),
  };
}
