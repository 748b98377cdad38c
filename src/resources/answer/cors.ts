/**
 * Cross-origin resource sharing (§4.8, §5.5): which origins may read answers, and which fields they see.
 * `*` is sent only where every origin is allowed; credentials are never combined with it.
 */

export type CorsPolicy = {
  readonly enabled: boolean;
  /** `*`, or the exact serialized origins. */
  readonly origins: '*' | ReadonlySet<string>;
  readonly maxAgeSeconds: number;
};

export const allowedRequestFields =
  'Authorization, Content-Type, If-Match, If-None-Match, Idempotency-Key, Prefer, X-API-Key';

const exposedFields =
  'ETag, Location, Link, Retry-After, RateLimit, RateLimit-Policy, X-RateLimit-Remaining, Content-Location, ' +
  'Accept-Patch, Accept-Post, Accept-Query, Allow, API-Version, Deprecation, Sunset, Preference-Applied, X-Total-Count';

/** @param list `*`, or comma-separated origins, or empty for none */
export function corsPolicy(list: string, maxAgeSeconds: number): CorsPolicy {
  const origins = list
    .split(',')
    .map((origin) => origin.trim())
    .filter((origin) => origin !== '');
  return {
    enabled: origins.length > 0,
    origins: origins.includes('*') ? '*' : new Set(origins),
    maxAgeSeconds,
  };
}

/** The origin to allow; undefined where this one is not. */
export function allowedOrigin(policy: CorsPolicy, origin: string | undefined): string | undefined {
  if (!policy.enabled || origin === undefined) return undefined;
  if (policy.origins === '*') return '*';
  return policy.origins.has(origin) ? origin : undefined;
}

/** What allows an origin: named ones may send credentials, `*` never (§5.5). */
export function allowingFields(allowed: string): readonly string[] {
  const fields = ['Access-Control-Allow-Origin', allowed];
  return allowed === '*' ? fields : [...fields, 'Access-Control-Allow-Credentials', 'true'];
}

/** Fields of an answer that is no preflight. Vary is sent whenever the answer would differ by origin. */
export function corsFields(policy: CorsPolicy, origin: string | undefined): readonly string[] {
  const allowed = allowedOrigin(policy, origin);
  const vary = policy.origins === '*' ? [] : ['Vary', 'Origin'];
  if (allowed === undefined) return vary;
  return [...allowingFields(allowed), 'Access-Control-Expose-Headers', exposedFields, ...vary];
}
