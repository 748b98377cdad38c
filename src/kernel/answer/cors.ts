/**
 * Cross-origin resource sharing (§4.8, §5.5): which origins may read answers, which fields they see, and whether their pages may send
 * the credentials of the browser. `*` is sent only where every origin is allowed; credentials are never combined with it.
 *
 * Reading alone is decided here: what a page may change with the user's cookie is decided before (auth), by the same origins.
 */

export type CorsPolicy = {
  readonly enabled: boolean;
  /** `*`, or the exact serialized origins. */
  readonly origins: '*' | ReadonlySet<string>;
  /** Whether their pages may send cookies; never with `*`. */
  readonly credentials: boolean;
  readonly maxAgeSeconds: number;
};

export const allowedRequestFields =
  'Authorization, Content-Type, If-Match, If-None-Match, Idempotency-Key, Prefer, X-API-Key';

const exposedFields =
  'ETag, Location, Link, Retry-After, RateLimit, RateLimit-Policy, X-RateLimit-Remaining, Content-Location, ' +
  'Accept-Patch, Accept-Post, Accept-Query, Allow, API-Version, Deprecation, Sunset, Preference-Applied, X-Total-Count';

/**
 * @param list `*`, or comma-separated origins, or empty for none
 * @param credentials `auto`: where the origins are named; `on` with `*` is refused before, and has no effect here
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

/** The origins whose pages may send the credentials of the browser. */
export function credentialedOrigins({ origins, credentials }: CorsPolicy): ReadonlySet<string> {
  return credentials && origins !== '*' ? origins : new Set();
}

/** The origin to allow; undefined where this one is not. */
export function allowedOrigin(policy: CorsPolicy, origin: string | undefined): string | undefined {
  if (!policy.enabled || origin === undefined) return undefined;
  if (policy.origins === '*') return '*';
  return policy.origins.has(origin) ? origin : undefined;
}

/** What allows an origin, in a preflight as in the answer itself (§5.5). @param allowed of `allowedOrigin` */
export function allowingFields(policy: CorsPolicy, allowed: string): readonly string[] {
  const fields = ['Access-Control-Allow-Origin', allowed];
  return policy.credentials ? [...fields, 'Access-Control-Allow-Credentials', 'true'] : fields;
}

/** Fields of an answer that is no preflight. Vary is sent whenever the answer would differ by origin. */
export function corsFields(policy: CorsPolicy, origin: string | undefined): readonly string[] {
  const allowed = allowedOrigin(policy, origin);
  const vary = policy.origins === '*' ? [] : ['Vary', 'Origin'];
  if (allowed === undefined) return vary;
  return [...allowingFields(policy, allowed), 'Access-Control-Expose-Headers', exposedFields, ...vary];
}
