/**
 * Decides which account a person from a provider enters, and carries that out in one unit: account, identity, session and audit entries. The
 * unit expects all rows unchanged; after a lost race the decision is made again from new reads.
 */
import { hash } from 'node:crypto';
import { accountDefaults } from '../../config/accounts.ts';
import type { Settings } from '../../config/settings.ts';
import type { Problem } from '../../http/problem.ts';
import type { Ask } from '../../kernel/resource.ts';
import { idFor } from '../../model/id.ts';
import { overtaken } from '../../store/lines.ts';
import { type Change, keptRow, Overtaken, type Row } from '../../store/store.ts';
import type { AccountParts } from '../account-parts.ts';
import {
  identitiesTable,
  passwordChange,
  readPassword,
  readUser,
  sessionsTable,
  type User,
  usersTable,
} from '../account-tables.ts';
import { type From, originOf } from '../audit.ts';
import { type NextStep, nextStep } from '../login.ts';
import { readFactor } from '../second-factor/factor-row.ts';
import type { Opened } from '../sessions/sessions.ts';
import type { NewAccount } from '../users/new-accounts.ts';
import { type FoundUser, userRow } from '../users/user-row.ts';
import type { ProviderIdentity } from './redeem-code.ts';
import type { SignIn } from './sign-ins.ts';

/** A person as the provider described them, and the purpose of the sign-in. */
type Arrival = Pick<SignIn, 'provider' | 'link'> &
  From & {
    readonly identity: ProviderIdentity;
    /** True if a cookie carries the session. */
    readonly cookie: boolean;
    readonly ask: Ask;
  };

export type Entered =
  | { readonly kind: 'entered'; readonly opened: Opened }
  /** The account has a second factor, which the challenge asks for (§5.8). */
  | { readonly kind: 'second-factor'; readonly step: NextStep }
  | { readonly kind: 'linked'; readonly user: Pick<User, 'id' | 'email'> }
  | { readonly kind: 'refused'; readonly problem: Problem };

/** @throws StoreUnavailable */
export function enterAccount(parts: AccountParts, arrival: Arrival): Promise<Entered> {
  const row = { table: identitiesTable, id: identityId(arrival.identity) };
  return parts.store.lines.change(row, () => tryOnce(parts, arrival));
}

type Found = {
  readonly findings: Findings;
  readonly identityRow: Row | undefined;
  /** The row of the linked account, or else of the account with the identity's address. */
  readonly accountRow: Row | undefined;
};

async function tryOnce(parts: AccountParts, arrival: Arrival): Promise<Entered | Overtaken> {
  const { clock } = parts;
  const found = await find(parts, arrival);
  const decided = decideAccount(found.findings, parts.settings);
  const at = clock();
  switch (decided.decision) {
    case 'refuse':
      return refuse(parts, arrival, decided);
    case 'link': {
      const { user, proven } = decided;
      const changes = linkChanges(parts, arrival, found, { user: user.id, proven }, at);
      const lost = await commit(parts, changes);
      return lost ?? { kind: 'linked', user: { id: user.id, email: user.email } };
    }
    case 'register': {
      const { emailVerified, name } = arrival.identity;
      const fields = {
        ...{ email: decided.email, ...(name === undefined ? {} : { name }) },
        ...{ ...accountDefaults, emailVerified },
      };
      return enterNewAccount(parts, arrival, found, { id: idFor('account', parts.newId), fields }, at);
    }
    case 'link-and-enter': {
      const { user, proven } = decided;
      const linked = linkChanges(parts, arrival, found, { user: user.id, proven }, at);
      const password = await rewritePassword(parts, user, at);
      // The link would outlast a stolen mailbox: with a second factor, the owner links the identity in a session.
      if ((await stepOf(parts, user)) !== undefined) {
        return refuse(parts, arrival, { subject: user.id, problem: { code: 'account_exists' } });
      }
      const changes = [expectUnchanged(parts, user, found), ...linked, ...password];
      return enterWithSession(parts, arrival, user, changes, at);
    }
    case 'enter': {
      const { user, proven } = decided;
      const used = rewriteIdentity(arrival, found, { user: user.id, proven }, at);
      const password = await rewritePassword(parts, user, at);
      const step = await stepOf(parts, user);
      if (step !== undefined) return { kind: 'second-factor', step };
      // A reset may verify the address at this moment; then an unproven identity must not enter.
      const changes = proven ? [used, ...password] : [expectUnchanged(parts, user, found), used, ...password];
      return enterWithSession(parts, arrival, user, changes, at);
    }
  }
}

async function enterNewAccount(
  parts: AccountParts,
  arrival: Arrival,
  found: Found,
  proposed: NewAccount,
  at: number,
): Promise<Entered | Overtaken> {
  const { newAccounts, store } = parts;
  const judged = await newAccounts.judge(proposed, {});
  if ('refused' in judged) return { kind: 'refused', problem: incomplete(judged.refused) };
  const committed = await newAccounts.commit(arrival.ask, store, judged, async (account) => {
    const next = userRow(newAccounts.users, account.id, account.fields, at, at);
    const user = readUser(next.doc);
    const opened = await parts.sessions.open(user, { cookie: arrival.cookie, at });
    const changes = [
      { table: usersTable, id: user.id, expect: { absent: true }, next } as const,
      passwordChange(user.id, undefined, null, at),
      fact(parts, arrival, 'account.registered', user.id),
      ...linkChanges(parts, arrival, found, { user: user.id, proven: user.emailVerified }, at),
      ...opened.changes,
      fact(parts, arrival, 'login.succeeded', user.id),
    ];
    return { changes, result: opened };
  });
  if ('result' in committed) {
    parts.observe({ kind: 'login-judged', outcome: 'succeeded' });
    return { kind: 'entered', opened: committed.result };
  }
  if (!('refused' in committed)) return committed;
  // Another account took the address meanwhile: the next attempt finds it.
  if (isTakenAddress(committed.refused)) return new Overtaken({ table: usersTable, id: judged.id });
  return { kind: 'refused', problem: committed.refused };
}

/** Names what is missing, which a registration sets. @param why the new account is refused */
function incomplete({ errors }: Problem): Problem {
  return {
    code: 'forbidden',
    message:
      'an account needs fields that the provider does not send; register first, then link the provider',
    ...(errors === undefined ? {} : { errors }),
  };
}

function isTakenAddress({ code, errors }: Problem): boolean {
  return code === 'unique_taken' && errors?.[0]?.pointer === '/email';
}

function refuse(
  { audit, observe }: AccountParts,
  arrival: Arrival,
  { subject, problem }: { readonly subject: string | null; readonly problem: Problem },
): Entered {
  const detail = { provider: arrival.provider, problem: problem.code };
  audit.note({ type: 'login.failed', actor: null, subject, ...originOf(arrival), detail });
  observe({ kind: 'login-judged', outcome: 'failed' });
  return { kind: 'refused', problem };
}

/**
 * Returns undefined for an account without a second factor. Call it after `rewritePassword`: adding a factor rewrites that row too, so
 * one that is added later makes the unit of the sign-in fail.
 */
async function stepOf({ store, challenges }: AccountParts, user: User): Promise<NextStep | undefined> {
  const password = await readPassword(store, user.id);
  const stored = await readFactor(store, user.id);
  return stored === undefined ? undefined : nextStep(challenges, user.id, password?.hash, stored.factor);
}

async function find(parts: AccountParts, arrival: Arrival): Promise<Found> {
  const { store, findUser } = parts;
  const { identity, link } = arrival;
  const identityRow = await store.read(identitiesTable, identityId(identity));
  const known = identityRow === undefined ? undefined : readIdentity(identityRow);
  // The account may have been deleted since; then the identity is free.
  const linked = known === undefined ? undefined : await findUser.byId(known.user);
  const sameAddress: FoundUser | undefined =
    identity.email === undefined ? undefined : await findUser.byEmail(identity.email);
  return {
    identityRow,
    accountRow: (linked ?? sameAddress)?.row,
    findings: {
      identity,
      linked: linked === undefined ? undefined : { user: linked.user, proven: known?.proven === true },
      sameAddress: sameAddress?.user,
      linkingTo: link === null ? null : { user: await userOfSession(parts, link) },
    },
  };
}

/** Writes the account unchanged, so that the unit fails if it changed after the decision. */
function expectUnchanged({ newAccounts }: AccountParts, user: User, { accountRow: read }: Found): Change {
  if (read?.id !== user.id) throw new Error('the chosen account requires its row');
  const next = userRow(newAccounts.users, user.id, user, read.createdAt, read.updatedAt);
  return { table: usersTable, id: user.id, expect: { rev: read.rev }, next };
}

/** Writes the password unchanged, as every login does, so that a concurrent password change ends this session or comes after it. */
async function rewritePassword({ store }: AccountParts, user: User, at: number): Promise<readonly Change[]> {
  const stored = await readPassword(store, user.id);
  return stored === undefined ? [] : [passwordChange(user.id, stored, stored.hash, at)];
}

async function userOfSession(
  { store, findUser }: AccountParts,
  link: NonNullable<SignIn['link']>,
): Promise<User | undefined> {
  const session = await store.read(sessionsTable, link.session);
  return session === undefined ? undefined : (await findUser.byId(link.user))?.user;
}

async function enterWithSession(
  parts: AccountParts,
  arrival: Arrival,
  user: User,
  changes: readonly Change[],
  at: number,
): Promise<Entered | Overtaken> {
  const opened = await parts.sessions.open(user, { cookie: arrival.cookie, at });
  const succeeded = fact(parts, arrival, 'login.succeeded', user.id);
  const lost = await commit(parts, [...changes, ...opened.changes, succeeded]);
  if (lost !== undefined) return lost;
  parts.observe({ kind: 'login-judged', outcome: 'succeeded' });
  return { kind: 'entered', opened };
}

function linkChanges(
  parts: AccountParts,
  arrival: Arrival,
  found: Found,
  link: Pick<Identity, 'user' | 'proven'>,
  at: number,
): readonly Change[] {
  return [rewriteIdentity(arrival, found, link, at), fact(parts, arrival, 'identity.linked', link.user)];
}

function rewriteIdentity(
  { identity, provider }: Arrival,
  { identityRow }: Found,
  link: Pick<Identity, 'user' | 'proven'>,
  at: number,
): Change {
  return identityChange(identityId(identity), identityRow, { ...link, provider }, at);
}

function fact(
  { audit }: AccountParts,
  arrival: Arrival,
  type: 'account.registered' | 'identity.linked' | 'login.succeeded',
  user: string,
): Change {
  const detail = { provider: arrival.provider };
  return audit.entry({ type, actor: user, subject: user, ...originOf(arrival), detail });
}

/** A lost race includes another account that took the address (`taken`). */
async function commit({ store }: AccountParts, changes: readonly Change[]): Promise<Overtaken | undefined> {
  const unit = { changes, events: [] };
  const commit = await store.commit(unit);
  return commit.outcome === 'committed' ? undefined : overtaken(unit, commit);
}

type Identity = {
  readonly user: string;
  readonly provider: string;
  /** The account's address was verified when the identity was linked, or the provider asserted that very address. */
  readonly proven: boolean;
};

/** Id of an identity's row: a digest of issuer and subject. */
function identityId({ issuer, subject }: ProviderIdentity): string {
  return hash('sha256', JSON.stringify([issuer, subject]), 'base64url');
}

function readIdentity(row: Row): Identity {
  return JSON.parse(row.doc) as Identity;
}

/** @param before undefined if the identity is not linked @param at milliseconds since the epoch */
function identityChange(id: string, before: Row | undefined, identity: Identity, at: number): Change {
  return {
    table: identitiesTable,
    id,
    expect: before === undefined ? { absent: true } : { rev: before.rev },
    next: keptRow(JSON.stringify(identity), identity.user, before?.createdAt ?? at, at),
  };
}

// Decides which account a person from a provider enters (docs/decisions/0023-account-linking.md). Pure. The rule behind all cases: only
// the owner enters an account, known by an identity that the owner linked, or by an address that both sides have verified.

export type Findings = {
  readonly identity: ProviderIdentity;
  readonly linked: { readonly user: User; readonly proven: boolean } | undefined;
  readonly sameAddress: User | undefined;
  /** For a sign-in that links: the account that requested it, undefined if its session has ended. */
  readonly linkingTo: { readonly user: User | undefined } | null;
};

/** Settings of these names. */
export type AccountRules = Pick<Settings, 'registration' | 'verifiedEmailRequired'>;

type AccountDecision =
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
    return refuseEntry('the session that requested the link has ended; log in and start again', null);
  if (user.disabled) return refuseEntry(closedAccount, user.id, 'forbidden');
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
    return refuseEntry('no account belongs to this identity, and registration is closed', null, 'forbidden');
  }
  if (email === undefined)
    return refuseEntry('the provider sent no e-mail address, and an account requires one', null);
  if (rules.verifiedEmailRequired && !emailVerified) return refuseEntry(unverified, null, 'email_unverified');
  return { decision: 'register', email };
}

function enter(
  user: User,
  decision: 'enter' | 'link-and-enter',
  proven: boolean,
  rules: AccountRules,
): AccountDecision {
  if (user.disabled) return refuseEntry(closedAccount, user.id, 'forbidden');
  if (rules.verifiedEmailRequired && !user.emailVerified)
    return refuseEntry(unverified, user.id, 'email_unverified');
  return { decision, user, proven };
}

function assertsAddressOf(identity: ProviderIdentity, user: User): boolean {
  return identity.emailVerified && identity.email === user.email;
}

const closedAccount = 'sign-in to this account is not allowed';
const unverified = 'the e-mail address is not verified';

function refuseEntry(
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
