/**
 * Carries out the decision of decide-account.ts in one unit: account, identity, session and audit entries. The unit expects all rows
 * unchanged; after a lost race the decision is made again from new reads.
 */

import { hash } from 'node:crypto';
import { accountDefaults } from '../../config/account-members.ts';
import type { Problem } from '../../http/problem.ts';
import type { Ask } from '../../kernel/resource.ts';
import type { Services } from '../../store/capabilities.ts';
import { keptRow } from '../../store/kept-row.ts';
import { overtaken } from '../../store/lines.ts';
import { type Change, Overtaken, type Row, type Store } from '../../store/store.ts';
import { identitiesTable, readUser, sessionsTable, type User, usersTable } from '../account-tables.ts';
import { type Audit, type From, originOf } from '../audit-fact.ts';
import { passwordChange, readPassword } from '../passwords/password-row.ts';
import type { ChallengeTokens } from '../second-factor/challenge-tokens.ts';
import { readFactor } from '../second-factor/factor-row.ts';
import { type NextStep, nextStep } from '../second-factor/next-step.ts';
import type { Opened, Sessions } from '../sessions/sessions.ts';
import type { FindUser, FoundUser } from '../users/find-user.ts';
import type { NewAccount, NewAccounts } from '../users/new-accounts.ts';
import { userRow } from '../users/user-row.ts';
import { type AccountRules, decideAccount, type Findings } from './decide-account.ts';
import type { ProviderIdentity } from './provider-identity.ts';
import type { SignIn } from './sign-ins.ts';

export type EnterAccountOptions = AccountRules &
  Pick<Services, 'clock' | 'newId' | 'observe'> & {
    readonly store: Pick<Store, 'read' | 'commit' | 'lines'>;
    readonly findUser: FindUser;
    readonly newAccounts: NewAccounts;
    readonly sessions: Pick<Sessions, 'open'>;
    readonly audit: Audit;
    readonly challenges: ChallengeTokens;
  };

/** A person as the provider described them, and the purpose of the sign-in. */
export type Arrival = Pick<SignIn, 'provider' | 'link'> &
  From & {
    readonly identity: ProviderIdentity;
    /** Whether a cookie carries the session. */
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
export function enterAccount(options: EnterAccountOptions, arrival: Arrival): Promise<Entered> {
  const row = { table: identitiesTable, id: identityId(arrival.identity) };
  return options.store.lines.change(row, () => tryOnce(options, arrival));
}

type Found = {
  readonly findings: Findings;
  readonly identityRow: Row | undefined;
  /** The row of the linked account, or else of the account with the identity's address. */
  readonly accountRow: Row | undefined;
};

async function tryOnce(options: EnterAccountOptions, arrival: Arrival): Promise<Entered | Overtaken> {
  const { clock } = options;
  const found = await find(options, arrival);
  const decided = decideAccount(found.findings, options);
  const at = clock();
  switch (decided.decision) {
    case 'refuse':
      return refuse(options, arrival, decided);
    case 'link': {
      const { user, proven } = decided;
      const changes = linkChanges(options, arrival, found, { user: user.id, proven }, at);
      const lost = await commit(options, changes);
      return lost ?? { kind: 'linked', user: { id: user.id, email: user.email } };
    }
    case 'register': {
      const { emailVerified, name } = arrival.identity;
      const fields = {
        ...{ email: decided.email, ...(name === undefined ? {} : { name }) },
        ...{ ...accountDefaults, emailVerified },
      };
      return enterNewAccount(options, arrival, found, { id: `usr_${options.newId()}`, fields }, at);
    }
    case 'link-and-enter': {
      const { user, proven } = decided;
      const linked = linkChanges(options, arrival, found, { user: user.id, proven }, at);
      const password = await rewritePassword(options, user, at);
      // The link would outlast a stolen mailbox: with a second factor, the owner links the identity in a session.
      if ((await stepOf(options, user)) !== undefined) {
        return refuse(options, arrival, { subject: user.id, problem: { code: 'account_exists' } });
      }
      const changes = [expectUnchanged(options, user, found), ...linked, ...password];
      return enterWithSession(options, arrival, user, changes, at);
    }
    case 'enter': {
      const { user, proven } = decided;
      const used = rewriteIdentity(arrival, found, { user: user.id, proven }, at);
      const password = await rewritePassword(options, user, at);
      const step = await stepOf(options, user);
      if (step !== undefined) return { kind: 'second-factor', step };
      // A reset may verify the address at this moment; then an unproven identity must not enter.
      const changes = proven
        ? [used, ...password]
        : [expectUnchanged(options, user, found), used, ...password];
      return enterWithSession(options, arrival, user, changes, at);
    }
  }
}

async function enterNewAccount(
  options: EnterAccountOptions,
  arrival: Arrival,
  found: Found,
  proposed: NewAccount,
  at: number,
): Promise<Entered | Overtaken> {
  const { newAccounts, store } = options;
  const judged = await newAccounts.judge(proposed, {});
  if ('refused' in judged) return { kind: 'refused', problem: incomplete(judged.refused) };
  const committed = await newAccounts.commit(arrival.ask, store, judged, async (account) => {
    const next = userRow(newAccounts.users, account.id, account.fields, at, at);
    const user = readUser(next.doc);
    const opened = await options.sessions.open(user, { cookie: arrival.cookie, at });
    const changes = [
      { table: usersTable, id: user.id, expect: { absent: true }, next } as const,
      passwordChange(user.id, undefined, null, at),
      fact(options, arrival, 'account.registered', user.id),
      ...linkChanges(options, arrival, found, { user: user.id, proven: user.emailVerified }, at),
      ...opened.changes,
      fact(options, arrival, 'login.succeeded', user.id),
    ];
    return { changes, result: opened };
  });
  if ('result' in committed) {
    options.observe({ kind: 'login-judged', outcome: 'succeeded' });
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
  { audit, observe }: EnterAccountOptions,
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
async function stepOf({ store, challenges }: EnterAccountOptions, user: User): Promise<NextStep | undefined> {
  const password = await readPassword(store, user.id);
  const stored = await readFactor(store, user.id);
  return stored === undefined ? undefined : nextStep(challenges, user.id, password?.hash, stored.factor);
}

async function find(options: EnterAccountOptions, arrival: Arrival): Promise<Found> {
  const { store, findUser } = options;
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
      linkingTo: link === null ? null : { user: await userOfSession(options, link) },
    },
  };
}

/** Writes the account unchanged, so that the unit fails if it changed after the decision. */
function expectUnchanged(
  { newAccounts }: EnterAccountOptions,
  user: User,
  { accountRow: read }: Found,
): Change {
  if (read?.id !== user.id) throw new Error('the chosen account requires its row');
  const next = userRow(newAccounts.users, user.id, user, read.createdAt, read.updatedAt);
  return { table: usersTable, id: user.id, expect: { rev: read.rev }, next };
}

/** Writes the password unchanged, as every login does, so that a concurrent password change ends this session or comes after it. */
async function rewritePassword(
  { store }: EnterAccountOptions,
  user: User,
  at: number,
): Promise<readonly Change[]> {
  const standing = await readPassword(store, user.id);
  return standing === undefined ? [] : [passwordChange(user.id, standing, standing.hash, at)];
}

async function userOfSession(
  { store, findUser }: EnterAccountOptions,
  link: NonNullable<SignIn['link']>,
): Promise<User | undefined> {
  const session = await store.read(sessionsTable, link.session);
  return session === undefined ? undefined : (await findUser.byId(link.user))?.user;
}

async function enterWithSession(
  options: EnterAccountOptions,
  arrival: Arrival,
  user: User,
  changes: readonly Change[],
  at: number,
): Promise<Entered | Overtaken> {
  const opened = await options.sessions.open(user, { cookie: arrival.cookie, at });
  const succeeded = fact(options, arrival, 'login.succeeded', user.id);
  const lost = await commit(options, [...changes, ...opened.changes, succeeded]);
  if (lost !== undefined) return lost;
  options.observe({ kind: 'login-judged', outcome: 'succeeded' });
  return { kind: 'entered', opened };
}

function linkChanges(
  options: EnterAccountOptions,
  arrival: Arrival,
  found: Found,
  link: Pick<Identity, 'user' | 'proven'>,
  at: number,
): readonly Change[] {
  return [rewriteIdentity(arrival, found, link, at), fact(options, arrival, 'identity.linked', link.user)];
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
  { audit }: EnterAccountOptions,
  arrival: Arrival,
  type: 'account.registered' | 'identity.linked' | 'login.succeeded',
  user: string,
): Change {
  const detail = { provider: arrival.provider };
  return audit.entry({ type, actor: user, subject: user, ...originOf(arrival), detail });
}

/** A lost race includes another account that took the address (`taken`). */
async function commit(
  { store }: EnterAccountOptions,
  changes: readonly Change[],
): Promise<Overtaken | undefined> {
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
