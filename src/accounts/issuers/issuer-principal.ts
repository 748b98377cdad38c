/**
 * The principal of a trusted issuer's token, with at most the rights that the declaration grants. Its id includes the issuer, so that
 * it never equals a principal of another issuer, an account or a key.
 */
import type { JWTPayload } from 'jose';
import type { TrustedIssuer } from '../../config/trusted-issuers.ts';
import { type Authenticated, administratorRole, authenticated, type Scope } from '../../model/principal.ts';

/** OpenID Connect Core 1.0 §2. */
const subjectCharactersMax = 255;
/** The bounds of accounts; anything beyond is not granted. */
const rolesMax = 32;
const roleCharactersMax = 64;
const tenantCharactersMax = 200;
const controls = /\p{Cc}/u;

export function principalOfClaims(issuer: TrustedIssuer, claims: JWTPayload): Authenticated | undefined {
  const { sub } = claims;
  if (sub === undefined || sub === '' || sub.length > subjectCharactersMax || controls.test(sub))
    return undefined;
  const asked = readRoles(issuer, claims);
  const isAdministrator = issuer.scopes.includes('admin') && asked.includes(administratorRole);
  return authenticated({
    id: `${issuer.issuer}|${sub}`,
    scopes: isAdministrator ? issuer.scopes : readScopes(issuer, claims),
    roles: isAdministrator ? asked : asked.filter((role) => role !== administratorRole),
    tenant: readTenant(issuer, claims),
  });
}

function readScopes({ scopes, scopeClaim }: TrustedIssuer, claims: JWTPayload): readonly Scope[] {
  if (scopeClaim === undefined) return scopes;
  const value = claimAt(claims, scopeClaim);
  const named = typeof value === 'string' ? value.split(' ') : value;
  return Array.isArray(named) ? scopes.filter((scope) => named.includes(scope)) : [];
}

function readRoles({ rolesClaim }: TrustedIssuer, claims: JWTPayload): readonly string[] {
  if (rolesClaim === undefined) return [];
  const value = claimAt(claims, rolesClaim);
  const named: readonly unknown[] = Array.isArray(value) ? value : [value];
  return named.filter(isRole).slice(0, rolesMax);
}

function isRole(role: unknown): role is string {
  return typeof role === 'string' && role !== '' && role.length <= roleCharactersMax;
}

function readTenant({ tenantClaim }: TrustedIssuer, claims: JWTPayload): string | null {
  if (tenantClaim === undefined) return null;
  const value = claimAt(claims, tenantClaim);
  const isTenant = typeof value === 'string' && value !== '' && value.length <= tenantCharactersMax;
  return isTenant ? value : null;
}

/** Follows only own members, never the prototype. */
function claimAt(claims: JWTPayload, path: readonly string[]): unknown {
  let value: unknown = claims;
  for (const name of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
    value = (value as Readonly<Record<string, unknown>>)[name];
  }
  return value;
}
