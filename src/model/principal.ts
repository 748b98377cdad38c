/**
 * The principal behind a request, the same for all credential schemes (§5.2): a carrier finds the credential, the
 * credential yields a principal, and access rules do not depend on the scheme.
 */
import type { HostRules } from './host-rules.ts';

/** The most that a credential may do; access rules decide within it. */
export type Scope = 'read' | 'write' | 'webhooks' | 'tunnel' | 'admin';

export const scopes: readonly Scope[] = ['read', 'write', 'webhooks', 'tunnel', 'admin'];

export type Anonymous = { readonly kind: 'anonymous' };

export type Authenticated = {
  readonly kind: 'authenticated';
  /** Stable identifier; the `owner` of what this principal creates. */
  readonly id: string;
  readonly scopes: ReadonlySet<Scope>;
  readonly roles: ReadonlySet<string>;
  readonly tenant: string | null;
  /** The fields of its account that the application declares; none for a principal without an account. Frozen. */
  readonly fields: Readonly<Record<string, unknown>>;
  /** Everything about the principal that can change a read; principals with equal audiences share results. */
  readonly audience: string;
};

export type Principal = Anonymous | Authenticated;

export const anonymous: Anonymous = { kind: 'anonymous' };

/** The principal of the administrator key: the operator, who has no account. */
export const operatorId = 'administrator';

/** No issuer has this name, so no principal of a token has such an id. */
const tenantPrefix = 'tenant|';

/** What a tenant may do in its portal: read its events, and have endpoints. */
const tenantScopes: readonly Scope[] = ['read', 'webhooks'];

/** The id of the principal that a tenant's portal acts for, and the owner of the tenant's endpoints. */
export function tenantPrincipalId(tenant: string): string {
  return tenantPrefix + tenant;
}

/** The tenant of such an id; undefined for any other. */
export function tenantOfId(id: string | null): string | undefined {
  return id?.startsWith(tenantPrefix) === true ? id.slice(tenantPrefix.length) : undefined;
}

export function tenantPrincipal(tenant: string, scopes: readonly Scope[] = tenantScopes): Authenticated {
  return authenticated({
    ...{ id: tenantPrincipalId(tenant), tenant },
    scopes: tenantScopes.filter((scope) => scopes.includes(scope)),
  });
}

/** The role that passes every access rule. */
export const administratorRole = 'administrator';

export type PrincipalParts = {
  readonly id: string;
  readonly scopes: Iterable<Scope>;
  readonly roles?: Iterable<string>;
  readonly tenant?: string | null;
  readonly fields?: Readonly<Record<string, unknown>>;
  /** Names these values of the fields, in place of their JSON text. */
  readonly fieldsMark?: string;
};

/** Created once for a credential and kept with it, because the audience is expensive to compute. */
export function authenticated(parts: PrincipalParts): Authenticated {
  const granted = new Set(parts.scopes);
  const roles = new Set(parts.roles);
  const tenant = parts.tenant ?? null;
  const fields = parts.fields ?? noFields;
  const marked = Object.keys(fields).length === 0 ? [] : [parts.fieldsMark ?? JSON.stringify(fields)];
  const audience = granted.has('admin')
    ? '*'
    : JSON.stringify([parts.id, tenant, [...roles].sort(), [...granted].sort(), ...marked]);
  return { kind: 'authenticated', id: parts.id, scopes: granted, roles, tenant, fields, audience };
}

export const noFields: Readonly<Record<string, unknown>> = Object.freeze({});

export function isAdministrator(principal: Principal): boolean {
  return principal.kind === 'authenticated' && principal.scopes.has('admin');
}

/** The empty text without a credential. */
export function audienceOf(principal: Principal): string {
  return principal.kind === 'anonymous' ? '' : principal.audience;
}

/** The key of a caller's Idempotency-Keys, which all credentials of a principal share. */
export function callerOf(principal: Principal): string {
  return principal.kind === 'anonymous' ? '' : principal.id;
}

/** Null without a credential, and for a principal of no tenant. */
export function tenantOf(principal: Principal): string | null {
  return principal.kind === 'authenticated' ? principal.tenant : null;
}

/** Null without a credential. */
export function principalIdOf(principal: Principal): string | null {
  return principal.kind === 'authenticated' ? principal.id : null;
}

export type Scheme =
  /** The administrator key or an API key, in any carrier. */
  | 'key'
  /** An access token of ours. */
  | 'token'
  /** A token of a trusted issuer. */
  | 'issuer'
  | 'password'
  | 'session-cookie'
  /** A session of a consumer's portal, which acts for a tenant. */
  | 'portal';

export type Known = {
  readonly principal: Authenticated;
  readonly scheme: Scheme;
  /** The session of the credential, which logout ends. */
  readonly session: string | null;
  /** The account needs a second factor and has none: only the routes that add one accept the credential. */
  readonly enrolsOnly?: boolean | undefined;
  /** The used API key; null for the administrator key and for other schemes. */
  readonly key: string | null;
  /** The chain of keys that created the key; revoking or restricting any of them applies to it too. */
  readonly makers?: readonly string[] | undefined;
  /** Host rules of the key and of its makers, all of which apply besides those of the principal. */
  readonly hosts?: readonly HostRules[] | undefined;
  /**
   * Set if other processes write to the store too: resolves false if one of them has revoked or changed what the
   * credential depends on since the last check. Await it before acting for the caller or responding.
   */
  readonly confirmed: Promise<boolean> | undefined;
  /** Calls back once when the credential is revoked or expires. Returns a function that removes the listener. */
  readonly onEnd: (listener: () => void) => () => void;
  /**
   * True, between a read for a listener of `onEnd` and its answer, if the credential still admits the same principal, although another
   * process may have changed its rows a moment ago; false: the listeners are called. Absent: `onEnd` alone decides.
   * @throws StoreUnavailable
   */
  readonly stands?: () => boolean | Promise<boolean>;
};

/** Watches a credential during work that takes long. `stands` is false once it was revoked or has expired. */
export function watchCredential(known: Known | undefined): {
  /** @throws StoreUnavailable */
  stands(): Promise<boolean>;
  close(): void;
} {
  let isEnded = false;
  const stopWatching = known?.onEnd(() => {
    isEnded = true;
  });
  return {
    stands: async () => !isEnded && (await known?.stands?.()) !== false,
    close: () => stopWatching?.(),
  };
}
