/**
 * Decides which account a person from a provider enters (docs/decisions/0023-account-linking.md). Pure. The rule behind all cases: only
 * the owner enters an account, known by an identity that the owner linked, or by an address that both sides have verified.
 */
import type { Settings } from '../../config/settings.ts';
import type { Problem } from '../../http/problem.ts';
import type { User } from '../account-tables.ts';
import type { ProviderIdentity } from './redeem-code.ts';

export type Findings = {
  readonly identity: ProviderIdentity;
  readonly linked: { readonly user: User; readonly proven: boolean } | undefined;
  readonly sameAddress: User | undefined;
  /** For a sign-in that links: the account that requested it, undefined if its session has ended. */
  readonly linkingTo: { readonly user: User | undefined } | null;
};

/** Settings of these names. */
export type AccountRules = Pick<Settings, 'registration' | 'verifiedEmailRequired'>;

export type AccountDecision =
  /** `proven`: as in `Identity` (enter-account.ts). */
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

/** The person was logged in at the start, so the account is theirs; the identity must not be linked to another. */
function decideLink(
  identity: ProviderIdentity,
  linked: User | undefined,
  user: User | undefined,
): AccountDecision {
  if (user === undefined)
    return refuse('the session that requested the link has ended; log in and start again', null);
  if (user.disabled) return refuse(closedAccount, user.id, 'forbidden');
  if (linked !== undefined && linked.id !== user.id) {
    return taken('this identity is linked to another account', user.id);
  }
  return { decision: 'link', user, proven: user.emailVerified || assertsAddressOf(identity, user) };
}

/**
 * An identity linked before the address was verified may belong to an intruder who registered another person's address. Once the owner
 * has verified the address, such a link counts only if the identity asserts that address.
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
  if (email === undefined)
    return refuse('the provider sent no e-mail address, and an account requires one', null);
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

const closedAccount = 'sign-in to this account is not allowed';
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
