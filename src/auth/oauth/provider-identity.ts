/**
 * Who somebody is at a provider, out of an ID token or a userinfo document (OpenID Connect Core 1.0 §5.1). An address counts as
 * verified only where the provider says `true`, as a boolean: an absent or otherwise written claim asserts nothing.
 */
import type { JsonValue } from 'oauth4webapi';
import { normalizeEmail } from '../email.ts';
import { ProviderFailure } from './provider-failure.ts';

export type ProviderIdentity = {
  /** Whose word it is. Together with `subject` it never names another person (§2). */
  readonly issuer: string;
  readonly subject: string;
  /** As `normalizeEmail` writes it; undefined: the provider tells none that could be one. */
  readonly email: string | undefined;
  /** The provider asserts that the person owns `email`. */
  readonly emailVerified: boolean;
  readonly name: string | undefined;
};

export type Claims = { readonly [name: string]: JsonValue | undefined };

const subjectCharactersMax = 1024;
/** As in the declaration of users. */
const nameCharactersMax = 200;

/** @param subject of `sub`, or what a plain provider has in its place */
export function identityOf(
  issuer: string,
  subject: string,
  claims: Claims,
  verifiedMember: string,
): ProviderIdentity {
  if (subject === '' || subject.length > subjectCharactersMax) {
    throw new ProviderFailure('the provider names nobody');
  }
  const email = typeof claims.email === 'string' ? normalizeEmail(claims.email) : undefined;
  return {
    issuer,
    subject,
    email,
    emailVerified: email !== undefined && claims[verifiedMember] === true,
    name: nameOf(claims),
  };
}

/** The subject of a plain provider: most give a number or a string as `id`. */
export function plainSubject(claims: Claims): string {
  const subject = claims.sub ?? claims.id;
  if (typeof subject === 'string') return subject;
  return Number.isSafeInteger(subject) ? String(subject) : '';
}

function nameOf(claims: Claims): string | undefined {
  const { name } = claims;
  if (typeof name !== 'string') return undefined;
  const shown = name.slice(0, nameCharactersMax).toWellFormed().replace(controls, ' ').trim();
  return shown === '' ? undefined : shown;
}

const controls = /\p{Cc}/gu;
