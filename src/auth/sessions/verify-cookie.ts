/**
 * A session cookie to a verdict (§5.2). It rests on the session and on its account, so that logout, a disabled account and a changed
 * role count with the next request. Why a cookie is not good is not told.
 */
import type { MaybePromise, Row } from '../../store/store.ts';
import { readUser, sessionsTable, usersTable } from '../tables.ts';
import type { Bad, Verdict } from '../verdict.ts';
import { parseSessionCookie } from './cookie.ts';
import { endOf, matches, readSession } from './session-row.ts';
import type { SessionsOptions } from './sessions.ts';
import type { Sightings } from './sightings.ts';
import { principalOf } from './user-principal.ts';

const invalid: Bad = { problem: 'invalid_token' };

export function verifySessionCookie(
  options: SessionsOptions,
  sightings: Sightings,
  value: string,
): MaybePromise<Verdict> {
  const parts = parseSessionCookie(value);
  if (parts === undefined) return invalid;
  const { store, clock } = options;

  function judgeSession(row: Row | undefined): MaybePromise<Verdict> {
    if (row === undefined) return invalid;
    const session = readSession(row);
    if (session.cookie === null || parts === undefined || !matches(parts.secret, session.cookie))
      return invalid;
    const expiresAt = Math.min(
      endOf(row, options.sessionSeconds),
      row.updatedAt + options.sessionIdleSeconds * 1000,
    );
    if (clock() >= expiresAt) return invalid;
    const owner = store.read(usersTable, session.user);
    return owner instanceof Promise
      ? owner.then((user) => judgeOwner(row, expiresAt, user))
      : judgeOwner(row, expiresAt, owner);
  }

  function judgeOwner(row: Row, expiresAt: number, owner: Row | undefined): Verdict {
    const principal = owner === undefined ? undefined : principalOf(readUser(owner.doc));
    if (principal === undefined || owner === undefined) return invalid;
    return {
      principal,
      scheme: 'session-cookie',
      session: row.id,
      key: null,
      expiresAt,
      basis: [
        { table: sessionsTable, id: row.id, rev: row.rev },
        { table: usersTable, id: owner.id, rev: owner.rev },
      ],
      onUse: sightings.ofSession(row),
    };
  }

  const row = store.read(sessionsTable, parts.session);
  return row instanceof Promise ? row.then(judgeSession) : judgeSession(row);
}
