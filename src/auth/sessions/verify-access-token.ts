/**
 * An access token of ours to a verdict (§5.1, §5.2). A good signature is not enough: the session that it was issued in and its account
 * must still stand, and the principal is the account as it is now. So logout ends a token at once (§5.1: no cached authentication
 * state is trusted), and a role that was taken away is gone before the token is.
 */
import { readUser, sessionsTable, usersTable } from '../tables.ts';
import type { Bad, Verdict } from '../verdict.ts';
import { endOf, readSession } from './session-row.ts';
import type { SessionsOptions } from './sessions.ts';
import { principalOf } from './user-principal.ts';

const invalid: Bad = { problem: 'invalid_token' };

export async function verifyAccessToken(options: SessionsOptions, token: string): Promise<Verdict> {
  const { store, clock } = options;
  const claims = await options.tokens.verify(token);
  if (claims === undefined) return invalid;
  const [session, owner] = await Promise.all([
    store.read(sessionsTable, claims.session),
    store.read(usersTable, claims.user),
  ]);
  if (session === undefined || owner === undefined) return invalid;
  if (readSession(session).user !== claims.user) return invalid;
  const principal = principalOf(readUser(owner.doc));
  const expiresAt = Math.min(claims.expiresAt, endOf(session, options.sessionSeconds));
  if (principal === undefined || clock() >= expiresAt) return invalid;
  return {
    principal,
    scheme: 'token',
    session: session.id,
    key: null,
    expiresAt,
    basis: [
      { table: sessionsTable, id: session.id, rev: session.rev },
      { table: usersTable, id: owner.id, rev: owner.rev },
    ],
  };
}
