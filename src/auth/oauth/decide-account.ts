/**
 * Which account a person who comes from a provider gets (docs/decisions/0023-account-linking.md). Pure: everything that was read comes
 * as an argument. The rule behind all cases: an account is entered by its owner alone, who is known by an identity that the owner linked,
 * or by an address that both sides have verified.
 */
import type { Problem } from '../../http/problem.ts';
import type { User } from '../tables.ts';
import type { ProviderIdentity } from './provider-identity.ts';

/** What was read about the identity. */
export type Findings = {
  readonly identity: ProviderIdentity;
  /** The account that the identity is linked to, if that still exists. */
  readonly linked: { readonly user: User; readonly proven: boolean } | undefined;
  /** The account that has the identity's address. */
  readonly sameAddress: User | undefined;
  /** Of a sign-in that was begun to link: the account that asked, undefined where its session has ended since. */
  readonly linkingTo: { readonly user: User | undefined } | null;
};

export type AccountRules = {
  readonly registration: 'open' | 'closed';
  readonly verifiedEmailRequired: boolean;
};

export type AccountDecision =
  /** `proven`: see identities.ts. */
  | { readonly decision: 'enter' | 'link-and-enter' | 'link'; readonly user: User; readonly proven: boolean }
  | { readonly decision: 'register'; readonly email: string }
  | { readonly decision: 'refuse'; readonly problem: Problem; readonly subject: string | null };

export function decideAccount(findings: Findings, rules: AccountRules): AccountDecision {
  const { identity, linked, sameAddress, linkingTo } = findings;
  if (linkingTo !== null) return decideLink(identity, linked?.user, linkingTo.user);
  if (linked !== undefined) return decideLinked(identity, linked, rules);
  if (sameAddress !== undefined) return decideSameAddress(identity, sameAddress, rules);
  return decideRegistration(identity, rules);
}

/** The person was logged in when it began, so the account is theirs; the identity must not be somebody else's. */
function decideLink(
  identity: ProviderIdentity,
  linked: User | undefined,
  user: User | undefined,
): AccountDecision {
  if (user === undefined) return refuse('the session that asked for the link has ended', null);
  if (user.disabled) return refuse(closedAccount, user.id, 'forbidden');
  if (linked !== undefined && linked.id !== user.id) {
    return taken('this identity is linked to another account', user.id);
  }
  return { decision: 'link', user, proven: user.emailVerified || assertsAddressOf(identity, user) };
}

/**
 * An identity that was linked while nobody had verified the address may be that of an intruder who registered somebody else's address
 * and waited. As soon as the address is verified, by its owner, such a link counts only if it is the owner's own.
 */
function decideLinked(
  identity: ProviderIdentity,
  { user, proven }: NonNullable<Findings['linked']>,
  rules: AccountRules,
): AccountDecision {
  const isOwner = assertsAddressOf(identity, user);
  if (!proven && !isOwner && user.emailVerified) return taken(undefined, user.id);
  return enter(user, 'enter', proven || isOwner, rules);
}

function decideSameAddress(identity: ProviderIdentity, user: User, rules: AccountRules): AccountDecision {
  if (!user.emailVerified || !assertsAddressOf(identity, user)) return taken(undefined, user.id);
  return enter(user, 'link-and-enter', true, rules);
}

function decideRegistration(identity: ProviderIdentity, rules: AccountRules): AccountDecision {
  const { email, emailVerified } = identity;
  if (rules.registration === 'closed') {
    return refuse('no account belongs to this identity, and registration is closed', null, 'forbidden');
  }
  if (email === undefined) return refuse('the provider tells no e-mail address', null);
  if (rules.verifiedEmailRequired && !emailVerified) return refuse(unverified, null, 'email_unverified');
  return { decision: 'register', email };
}

function enter(
  user: User,
  decision: 'enter' | 'link-and-enter',
  proven: boolean,
  rules: AccountRules,
): AccountDecision {
  if (user.disabled) return refuse(closedAccount, user.id, 'forbidden');
  if (rules.verifiedEmailRequired && !user.emailVerified)
    return refuse(unverified, user.id, 'email_unverified');
  return { decision, user, proven };
}

function assertsAddressOf(identity: ProviderIdentity, user: User): boolean {
  return identity.emailVerified && identity.email === user.email;
}

const closedAccount = 'this account cannot be signed in to';
const unverified = 'the e-mail address is not verified';

function refuse(
  message: string,
  subject: string | null,
  code: 'sign_in_invalid' | 'forbidden' | 'email_unverified' = 'sign_in_invalid',
): AccountDecision {
  return { decision: 'refuse', problem: { code, message }, subject };
}

function taken(message: string | undefined, subject: string): AccountDecision {
  const problem: Problem = { code: 'account_exists', ...(message === undefined ? {} : { message }) };
  return { decision: 'refuse', problem, subject };
}
