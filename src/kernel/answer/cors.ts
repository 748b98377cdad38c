/**
 * Cross-origin resource sharing (§4.8, §5.5): which origins may read responses, which fields they see, and whether
 * their pages may send the browser's credentials. `*` is sent only if every origin is allowed, and never with
 * credentials.
 *
 * Covers reading only: what a page may change with the user's cookie is decided with the cookie
 * (accounts/sessions/cookie.ts), from the same origins.
 */

import { pageFields } from '../../http/request-fields.ts';
import { type FieldName, responseFields } from '../../http/response-fields.ts';

export type CorsPolicy = {
  readonly enabled: boolean;
  /** `*`, or the exact serialized origins. */
  readonly origins: '*' | ReadonlySet<string>;
  /** Pages of these origins may send cookies; never true with `*`. */
  readonly credentials: boolean;
  readonly maxAgeSeconds: number;
  /** Values of Access-Control-Allow-Headers and Access-Control-Expose-Headers. */
  readonly allowedFields: string;
  readonly exposedFields: string;
  /** Fields of a response other than a preflight. Vary is sent unless all origins get the same fields. */
  readonly fieldsFor: (origin: string | undefined) => readonly string[];
};

/** Sent by clients and their libraries: those of uploads, and some without which Comity answers the same. */
const furtherRequestFields = [
  ...['Cache-Control', 'traceparent', 'tracestate', 'Content-Disposition', 'Tus-Resumable', 'Upload-Length'],
  ...[
    'Upload-Offset',
    'Upload-Complete',
    'Upload-Metadata',
    'Upload-Checksum',
    'Upload-Draft-Interop-Version',
  ],
];

/** Pages read these without permission (Fetch, CORS-safelisted response-header name), or have no use for them. */
const unexposedFields: ReadonlySet<string> = new Set<FieldName>([
  ...(Object.keys(responseFields) as FieldName[]).filter((name) => name.startsWith('Access-Control-')),
  ...(['Cache-Control', 'Last-Modified', 'Content-Security-Policy', 'X-Content-Type-Options'] as const),
  ...([
    'Sec-WebSocket-Protocol',
    'Sec-WebSocket-Version',
    'Set-Cookie',
    'Upgrade',
    'X-Accel-Buffering',
  ] as const),
]);

/** Of responses: all others that Comity sends. */
export const exposedFields: readonly string[] = [
  ...Object.keys(responseFields).filter((name) => !unexposedFields.has(name)),
  'Comity-Trace',
  'Date',
];

type CorsSettings = {
  /** `*`, comma-separated origins, or empty for none. */
  readonly corsOrigins: string;
  /** `auto`: allowed if the origins are named. `on` with `*` has no effect; the settings refuse it. */
  readonly corsCredentials: 'auto' | 'on' | 'off';
  readonly corsMaxAgeSeconds: number;
  /** Further names, comma-separated, or `*`. */
  readonly corsHeaders: string;
  readonly corsExpose: string;
};

export function corsPolicy({
  corsOrigins = '',
  corsCredentials = 'auto',
  corsMaxAgeSeconds: maxAgeSeconds = 0,
  corsHeaders = '',
  corsExpose = '',
}: Partial<CorsSettings>): CorsPolicy {
  const origins = listOf(corsOrigins);
  const isAny = origins.includes('*');
  const policy = {
    enabled: origins.length > 0,
    origins: isAny ? '*' : new Set(origins),
    credentials: !isAny && corsCredentials !== 'off',
    maxAgeSeconds,
    allowedFields: namesOf([...pageFields, ...furtherRequestFields], corsHeaders),
    exposedFields: namesOf(exposedFields, corsExpose),
  } as const;
  return { ...policy, fieldsFor: (origin) => corsFields(policy, origin) };
}

function listOf(text: string): readonly string[] {
  return text
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');
}

function namesOf(own: readonly string[], further: string): string {
  const known = new Set(own.map((name) => name.toLowerCase()));
  return [...own, ...listOf(further).filter((name) => !known.has(name.toLowerCase()))].join(', ');
}

/** The origins whose pages may send the browser's credentials. */
export function credentialedOrigins({ origins, credentials }: CorsPolicy): ReadonlySet<string> {
  return credentials && origins !== '*' ? origins : new Set();
}

/** Returns the value of Access-Control-Allow-Origin; undefined if the origin is not allowed. */
export function allowedOrigin(
  policy: Pick<CorsPolicy, 'enabled' | 'origins'>,
  origin: string | undefined,
): string | undefined {
  if (!policy.enabled || origin === undefined) return undefined;
  if (policy.origins === '*') return '*';
  return policy.origins.has(origin) ? origin : undefined;
}

/** The fields that allow an origin, in a preflight and in the response itself (§5.5). */
function allowingFields(policy: Pick<CorsPolicy, 'credentials'>, allowed: string): readonly string[] {
  const fields = ['Access-Control-Allow-Origin', allowed];
  return policy.credentials ? [...fields, 'Access-Control-Allow-Credentials', 'true'] : fields;
}

/** The fields of a preflight besides Allow. @param methods value of Access-Control-Allow-Methods */
export function preflightFields(
  policy: CorsPolicy,
  origin: string | undefined,
  methods: string,
): readonly string[] {
  if (!policy.enabled) return [];
  const vary = ['Vary', 'Origin, Access-Control-Request-Method, Access-Control-Request-Headers'];
  const allowed = allowedOrigin(policy, origin);
  if (allowed === undefined) return vary;
  return [
    ...vary,
    ...allowingFields(policy, allowed),
    ...['Access-Control-Allow-Methods', methods],
    ...['Access-Control-Allow-Headers', policy.allowedFields],
    ...['Access-Control-Max-Age', String(policy.maxAgeSeconds)],
  ];
}

/** The fields of `fieldsFor`, for the API document. */
export const crossOriginFields: readonly FieldName[] = [
  'Access-Control-Allow-Credentials',
  'Access-Control-Allow-Origin',
  'Access-Control-Expose-Headers',
  'Vary',
];

function corsFields(policy: Omit<CorsPolicy, 'fieldsFor'>, origin: string | undefined): readonly string[] {
  if (!policy.enabled) return [];
  const allowed = allowedOrigin(policy, origin);
  const vary = policy.origins === '*' ? [] : ['Vary', 'Origin'];
  if (allowed === undefined) return vary;
  return [...allowingFields(policy, allowed), 'Access-Control-Expose-Headers', policy.exposedFields, ...vary];
}
