/**
 * Carries out what decide-account.ts decides, in one unit: the account, the identity, the session and the facts for the audit trail are
 * there together or not at all. Whatever was read is expected unchanged; a lost race is decided anew from new reads.
 */
import type { Problem } from '../../http/problem.ts';
import type { Observe } from '../../observe/observation.ts';
import { overtaken } from '../../store/lines.ts';
import type { Change, Overtaken, Row, Store } from '../../store/store.ts';
import type { FindUser, FoundUser } from '../accounts/find-user.ts';
import { passwordChange, readPassword } from '../accounts/password-row.ts';
import { userRow } from '../accounts/user-row.ts';
import type { Audit } from '../audit-fact.ts';
import type { Opened, Sessions } from '../sessions/sessions.ts';
import { identitiesTable, sessionsTable, type User, usersTable } from '../tables.ts';
import { type AccountRules, decideAccount, type Findings } from './decide-account.ts';
import { type Identity, identityChange, identityId, readIdentity } from './identities.ts';
import { newAccount } from './new-account.ts';
import type { ProviderIdentity } from './provider-identity.ts';
import type { SignIn } from './sign-ins.ts';

export type EnterAccountOptions = AccountRules & {
  readonly store: Pick<Store, 'read' | 'commit' | 'lines'>;
  readonly clock: () => number;
  /** 26 characters (`createIdSource`). */
  readonly newId: () => string;
  readonly findUser: FindUser;
  readonly sessions: Pick<Sessions, 'open'>;
  readonly audit: Audit;
  readonly observe: Observe;
};

/** A person as the provider told of them, and what they came for. */
export type Arrival = Pick<SignIn, 'provider' | 'link'> & {
  readonly identity: ProviderIdentity;
  /** The session is carried by a cookie. */
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
  /** Of the account that the identity is linked to, or else of the one that has its address. */
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
      return openFor(options, arrival, account.user, [...account.changes, registered, ...linked], at);
    }
    case 'link-and-enter': {
      const { user, proven } = decided;
      const linked = linkChanges(options, arrival, found, { user: user.id, proven }, at);
      const changes = [asRead(user, found), ...linked, ...(await samePassword(options, user, at))];
      return openFor(options, arrival, user, changes, at);
    }
    case 'enter': {
      const { user, proven } = decided;
      const used = identityOfUser(arrival, found, { user: user.id, proven }, at);
      const password = await samePassword(options, user, at);
      // Where the address is verified at this moment, by a reset of the password perhaps, an unproven identity must not slip in.
      const changes = proven ? [used, ...password] : [asRead(user, found), used, ...password];
      return openFor(options, arrival, user, changes, at);
    }
  }
}

async function find(options: EnterAccountOptions, arrival: Arrival): Promise<Found> {
  const { store, findUser } = options;
  const { identity, link } = arrival;
  const identityRow = await store.read(identitiesTable, identityId(identity));
  const known = identityRow === undefined ? undefined : readIdentity(identityRow);
  // The account may have been deleted since: then the identity is free.
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

/** Demands that the account is still as it was when it was decided about, by writing it as it is. */
function asRead(user: User, { accountRow: read }: Found): Change {
  if (read?.id !== user.id) throw new Error('an account was decided on without its row');
  const next = userRow(user.id, user, read.createdAt, read.updatedAt);
  return { table: usersTable, id: user.id, expect: { rev: read.rev }, next };
}

/** Writes the password as it is, as every login does: one that changes at this moment ends this session too, or comes after it. */
async function samePassword(
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

/** Opens a session in one unit with the changes that lead to it. */
async function openFor(
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
  return [identityOfUser(arrival, found, link, at), fact(options, arrival, 'identity.linked', link.user)];
}

function identityOfUser(
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

/** Another change may have come first, be it that another account took the address (`taken`). */
async function commit(
  { store }: EnterAccountOptions,
  changes: readonly Change[],
): Promise<Overtaken | undefined> {
  const unit = { changes, events: [] };
  const commit = await store.commit(unit);
  return commit.outcome === 'committed' ? undefined : overtaken(unit, commit);
}
