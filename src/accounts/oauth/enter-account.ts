/**
 * Carries out the decision of decide-account.ts in one unit: account, identity, session and audit entries. The unit expects all rows
 * unchanged; after a lost race the decision is made again from new reads.
 */

import { hash } from 'node:crypto';
import type { Problem } from '../../http/problem.ts';
import type { Services } from '../../store/capabilities.ts';
import { keptRow } from '../../store/kept-row.ts';
import { overtaken } from '../../store/lines.ts';
import type { Change, Overtaken, Row, Store } from '../../store/store.ts';
import {
  identitiesTable,
  readUser,
  sessionsTable,
  type User,
  type UserFields,
  userDefaults,
  usersTable,
} from '../account-tables.ts';
import type { Audit } from '../audit-fact.ts';
import { passwordChange, readPassword } from '../passwords/password-row.ts';
import type { Opened, Sessions } from '../sessions/sessions.ts';
import type { FindUser, FoundUser } from '../users/find-user.ts';
import { userRow } from '../users/user-row.ts';
import { type AccountRules, decideAccount, type Findings } from './decide-account.ts';
import type { ProviderIdentity } from './provider-identity.ts';
import type { SignIn } from './sign-ins.ts';

export type EnterAccountOptions = AccountRules &
  Pick<Services, 'clock' | 'newId' | 'observe'> & {
    readonly store: Pick<Store, 'read' | 'commit' | 'lines'>;
    readonly findUser: FindUser;
    readonly sessions: Pick<Sessions, 'open'>;
    readonly audit: Audit;
  };

/** A person as the provider described them, and the purpose of the sign-in. */
export type Arrival = Pick<SignIn, 'provider' | 'link'> & {
  readonly identity: ProviderIdentity;
  /** Whether a cookie carries the session. */
  readonly cookie: boolean;
  readonly address: string;
};

export type Entered =
  | { readonly kind: 'entered'; readonly opened: Opened }
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
  const { audit, clock } = options;
  const found = await find(options, arrival);
  const decided = decideAccount(found.findings, options);
  const at = clock();
  switch (decided.decision) {
    case 'refuse': {
      const { subject, problem } = decided;
      const detail = { provider: arrival.provider, problem: problem.code };
      audit.note({ type: 'login.failed', actor: null, subject, address: arrival.address, detail });
      options.observe({ kind: 'login-judged', outcome: 'failed' });
      return { kind: 'refused', problem };
    }
    case 'link': {
      const { user, proven } = decided;
      const changes = linkChanges(options, arrival, found, { user: user.id, proven }, at);
      const lost = await commit(options, changes);
      return lost ?? { kind: 'linked', user: { id: user.id, email: user.email } };
    }
    case 'register': {
      const { emailVerified, name } = arrival.identity;
      const id = `usr_${options.newId()}`;
      const account = newAccount({ id, email: decided.email, emailVerified, name, at });
      const registered = fact(options, arrival, 'account.registered', id);
      const linked = linkChanges(options, arrival, found, { user: id, proven: emailVerified }, at);
      return enterWithSession(
        options,
        arrival,
        account.user,
        [...account.changes, registered, ...linked],
        at,
      );
    }
    case 'link-and-enter': {
      const { user, proven } = decided;
      const linked = linkChanges(options, arrival, found, { user: user.id, proven }, at);
      const changes = [
        expectUnchanged(user, found),
        ...linked,
        ...(await rewritePassword(options, user, at)),
      ];
      return enterWithSession(options, arrival, user, changes, at);
    }
    case 'enter': {
      const { user, proven } = decided;
      const used = rewriteIdentity(arrival, found, { user: user.id, proven }, at);
      const password = await rewritePassword(options, user, at);
      // A reset may verify the address at this moment; then an unproven identity must not enter.
      const changes = proven ? [used, ...password] : [expectUnchanged(user, found), used, ...password];
      return enterWithSession(options, arrival, user, changes, at);
    }
  }
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
function expectUnchanged(user: User, { accountRow: read }: Found): Change {
  if (read?.id !== user.id) throw new Error('the chosen account requires its row');
  const next = userRow(user.id, user, read.createdAt, read.updatedAt);
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
  { provider, address }: Arrival,
  type: 'account.registered' | 'identity.linked' | 'login.succeeded',
  user: string,
): Change {
  return audit.entry({ type, actor: user, subject: user, address, detail: { provider } });
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

type NewAccount = {
  readonly id: string;
  readonly email: string;
  readonly emailVerified: boolean;
  readonly name: string | undefined;
  /** Milliseconds since the epoch. */
  readonly at: number;
};

function newAccount(account: NewAccount): {
  readonly user: User;
  readonly changes: readonly Change[];
} {
  const { id, email, emailVerified, name, at } = account;
  const fields: UserFields = {
    email,
    ...(name === undefined ? {} : { name }),
    ...userDefaults,
    emailVerified,
  };
  const next = userRow(id, fields, at, at);
  const changes = [
    { table: usersTable, id, expect: { absent: true }, next } as const,
    passwordChange(id, undefined, null, at),
  ];
  return { user: readUser(next.doc), changes };
}
