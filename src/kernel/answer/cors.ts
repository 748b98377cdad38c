/**
 * Cross-origin resource sharing (§4.8, §5.5): which origins may read responses, which fields they see, and whether
 * their pages may send the browser's credentials. `*` is sent only if every origin is allowed, and never with
 * credentials.
 *
 * Covers reading only: what a page may change with the user's cookie is decided earlier (auth), from the same origins.
 */

export type CorsPolicy = {
  readonly enabled: boolean;
  /** `*`, or the exact serialized origins. */
  readonly origins: '*' | ReadonlySet<string>;
  /** Pages of these origins may send cookies; never true with `*`. */
  readonly credentials: boolean;
  readonly maxAgeSeconds: number;
};

export const allowedRequestFields =
  'Authorization, Content-Type, If-Match, If-None-Match, Idempotency-Key, Prefer, X-API-Key';

const exposedFields =
  'ETag, Location, Link, Retry-After, RateLimit, RateLimit-Policy, X-RateLimit-Remaining, Content-Location, ' +
  'Accept-Patch, Accept-Post, Accept-Query, Allow, API-Version, Deprecation, Sunset, Preference-Applied, X-Total-Count, Comity-Position';

/**
 * @param list `*`, comma-separated origins, or empty for none
 * @param credentials `auto`: allowed if the origins are named. `on` with `*` has no effect; the settings refuse it.
 */
export function corsPolicy(
  list: string,
  maxAgeSeconds: number,
  credentials: 'auto' | 'on' | 'off' = 'auto',
): CorsPolicy {
  const origins = list
    .split(',')
    .map((origin) => origin.trim())
    .filter((origin) => origin !== '');
  const isAny = origins.includes('*');
  return {
    enabled: origins.length > 0,
    origins: isAny ? '*' : new Set(origins),
    credentials: !isAny && credentials !== 'off',
    maxAgeSeconds,
  };
}

/** The origins whose pages may send the browser's credentials. */
export function credentialedOrigins({ origins, credentials }: CorsPolicy): ReadonlySet<string> {
  return credentials && origins !== '*' ? origins : new Set();
}

/** Returns the value of Access-Control-Allow-Origin; undefined if the origin is not allowed. */
export function allowedOrigin(policy: CorsPolicy, origin: string | undefined): string | undefined {
  if (!policy.enabled || origin === undefined) return undefined;
  if (policy.origins === '*') return '*';
  return policy.origins.has(origin) ? origin : undefined;
}

/** The fields that allow an origin, in a preflight and in the response itself (§5.5). */
export function allowingFields(policy: CorsPolicy, allowed: string): readonly string[] {
  const fields = ['Access-Control-Allow-Origin', allowed];
  return policy.credentials ? [...fields, 'Access-Control-Allow-Credentials', 'true'] : fields;
}

/** CORS fields of a response other than a preflight. Vary is sent unless all origins get the same fields. */
export function corsFields(policy: CorsPolicy, origin: string | undefined): readonly string[] {
  const allowed = allowedOrigin(policy, origin);
  const vary = policy.origins === '*' ? [] : ['Vary', 'Origin'];
  if (allowed === undefined) return vary;
  return [...allowingFields(policy, allowed), 'Access-Control-Expose-Headers', exposedFields, ...vary];
}
