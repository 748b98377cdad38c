/**
 * Who is asking. One principal model stands behind every credential scheme (§5.2): a carrier
 * finds the credential, the credential yields a principal, and nothing after that knows how it came.
 */

/** What a credential may do at most; access rules decide within it. */
export type Scope = 'read' | 'write' | 'webhooks' | 'tunnel' | 'admin';

export type Anonymous = { readonly kind: 'anonymous' };

export type Authenticated = {
  readonly kind: 'authenticated';
  /** Stable identifier; the `owner` of what this principal creates. */
  readonly id: string;
  readonly scopes: ReadonlySet<Scope>;
  readonly roles: ReadonlySet<string>;
};

export type Principal = Anonymous | Authenticated;

export const anonymous: Anonymous = { kind: 'anonymous' };

/** An administrator passes every access rule. */
export function isAdministrator(principal: Principal): boolean {
  return principal.kind === 'authenticated' && principal.scopes.has('admin');
}

/** The part of the principal that can change what a read returns; results may be shared within it. */
export function audienceOf(principal: Principal): string {
  if (principal.kind === 'anonymous') return '';
  return isAdministrator(principal) ? '*' : principal.id;
}
