/**
 * The identity of a person at a provider, from an ID token or a userinfo document (OpenID Connect Core 1.0 §5.1). An address is
 * verified only if the claim is the boolean `true`.
 */
import type { JsonValue } from 'oauth4webapi';
import { normalizeEmail } from '../../mail/email.ts';
import { ProviderFailure } from './provider-failure.ts';

export type ProviderIdentity = {
  /** With `subject` it identifies one person for ever (§2). */
  readonly issuer: string;
  readonly subject: string;
  /** In the form of `normalizeEmail`; undefined if the provider sent no valid address. */
  readonly email: string | undefined;
  readonly emailVerified: boolean;
  readonly name: string | undefined;
};

export type Claims = { readonly [name: string]: JsonValue | undefined };

const subjectCharactersMax = 1024;
const nameCharactersMax = 200;

/** @param subject the `sub` claim, or the member that a plain provider has instead */
export function identityOf(
  issuer: string,
  subject: string,
  claims: Claims,
  verifiedMember: string,
): ProviderIdentity {
  if (subject === '' || subject.length > subjectCharactersMax) {
    throw new ProviderFailure(
      `the subject from the provider must have 1 to ${subjectCharactersMax} characters`,
    );
  }
  const email = typeof claims.email === 'string' ? normalizeEmail(claims.email) : undefined;
  return {
    issuer,
    subject,
    email,
    emailVerified: email !== undefined && claims[verifiedMember] === true,
    name: readName(claims),
  };
}

/** Returns the subject of a plain provider, most of which send a number or a string as `id`. */
export function plainSubject(claims: Claims): string {
  const subject = claims.sub ?? claims.id;
  if (typeof subject === 'string') return subject;
  return Number.isSafeInteger(subject) ? String(subject) : '';
}

function readName(claims: Claims): string | undefined {
  const { name } = claims;
  if (typeof name !== 'string') return undefined;
  const shown = name.slice(0, nameCharactersMax).toWellFormed().replace(controls, ' ').trim();
  return shown === '' ? undefined : shown;
}

const controls = /\p{Cc}/gu;
