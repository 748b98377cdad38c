/**
 * Who is asking. One principal model stands behind every credential scheme (§5.2): a carrier finds the credential, the
 * credential yields a principal, and access rules see nothing of how it came.
 */

/** What a credential may do at most; access rules decide within it. */
export type Scope = 'read' | 'write' | 'webhooks' | 'tunnel' | 'admin';

export const scopes: readonly Scope[] = ['read', 'write', 'webhooks', 'tunnel', 'admin'];

export type Anonymous = { readonly kind: 'anonymous' };

export type Authenticated = {
  readonly kind: 'authenticated';
  /** Stable identifier; the `owner` of what this principal creates. */
  readonly id: string;
  readonly scopes: ReadonlySet<Scope>;
  readonly roles: ReadonlySet<string>;
  /** The tenant that it belongs to, where the application has such. */
  readonly tenant: string | null;
  /** Everything of the principal that can change what a read returns; results may be shared within it. */
  readonly audience: string;
};

export type Principal = Anonymous | Authenticated;

export const anonymous: Anonymous = { kind: 'anonymous' };

/** Whom the administrator key stands for: the operator, who is nobody's account. */
export const operatorId = 'administrator';

/** The role whose bearers pass every access rule. */
export const administratorRole = 'administrator';

export type PrincipalParts = {
  readonly id: string;
  readonly scopes: Iterable<Scope>;
  readonly roles?: Iterable<string>;
  readonly tenant?: string | null;
};

/** Made once for a credential and kept with it: the audience costs more than a request should pay. */
export function authenticated(parts: PrincipalParts): Authenticated {
  const granted = new Set(parts.scopes);
  const roles = new Set(parts.roles);
  const tenant = parts.tenant ?? null;
  const audience = granted.has('admin')
    ? '*'
    : JSON.stringify([parts.id, tenant, [...roles].sort(), [...granted].sort()]);
  return { kind: 'authenticated', id: parts.id, scopes: granted, roles, tenant, audience };
}

/** An administrator passes every access rule. */
export function isAdministrator(principal: Principal): boolean {
  return principal.kind === 'authenticated' && principal.scopes.has('admin');
}

/** The empty text for who is not known. */
export function audienceOf(principal: Principal): string {
  return principal.kind === 'anonymous' ? '' : principal.audience;
}

/** Who keeps Idempotency-Keys apart: every credential of a principal repeats the same requests. */
export function callerOf(principal: Principal): string {
  return principal.kind === 'anonymous' ? '' : principal.id;
}
