/**
 * Creates `Sessions`: the operations on sessions over one store and one ring of signing keys, and the verifiers of access tokens and
 * session cookies.
 */

import type { MaybePromise, Row, Store } from '../../store/store.ts';
import { readUser, sessionsTable, usersTable } from '../account-tables.ts';
import type { Bad, Verdict } from '../verdict.ts';
import { clearSessionCookie, parseSessionCookie } from './cookie.ts';
import { endSession, endSessionsOfUser, openSession } from './open-session.ts';
import { refreshSession } from './refresh-session.ts';
import { endOf, matches, readSession, sessionRow } from './session-row.ts';
import type { Sessions, SessionsOptions } from './sessions.ts';
import { principalOf } from './user-principal.ts';

export function createSessions(options: SessionsOptions): Sessions {
  const sightings = createSightings(options);
  return {
    open: openSession(options),
    refresh: (refreshToken, from, key) =>
      refreshSession(options, refreshToken, { from, idempotencyKey: key }),
    end: (sessionId) => endSession(options.store, sessionId),
    endOfUser: endSessionsOfUser(options.store),
    verifyToken: (token) => verifyAccessToken(options, token),
    verifyCookie: (cookie) => verifySessionCookie(options, sightings, cookie),
    clearCookie: clearSessionCookie(options.sessionSameSite),
    close: sightings.close,
  };
}

const invalid: Bad = { problem: 'invalid_token' };

/**
 * Verifies an access token of Comity (§5.1, §5.2). Besides a valid signature, its session and account must exist, and the principal has
 * the account's current rights. So logout ends a token at once, and a revoked role is gone before the token expires.
 */
async function verifyAccessToken(options: SessionsOptions, token: string): Promise<Verdict> {
  const { store, clock } = options;
  const claims = await options.tokens.verify(token);
  if (claims === undefined) return invalid;
  const [session, owner] = await Promise.all([
    store.read(sessionsTable, claims.session),
    store.read(usersTable, claims.user),
  ]);
  if (session === undefined || owner === undefined) return invalid;
  if (readSession(session).user !== claims.user) return invalid;
  const user = readUser(owner.doc);
  const principal = principalOf(user);
  const expiresAt = Math.min(claims.expiresAt, endOf(session, options.sessionSeconds));
  if (principal === undefined || clock() >= expiresAt) return invalid;
  return options.factorRule(user, {
    principal,
    scheme: 'token',
    session: session.id,
    key: null,
    expiresAt,
    basis: [
      { table: sessionsTable, id: session.id, rev: session.rev },
      { table: usersTable, id: owner.id, rev: owner.rev },
    ],
  });
}

/**
 * Verifies a session cookie (§5.2). The verdict rests on the session and its account, so that logout, a disabled account and a changed
 * role apply to the next request. The reason for a refusal is not revealed.
 */
function verifySessionCookie(
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

  function judgeOwner(row: Row, expiresAt: number, owner: Row | undefined): MaybePromise<Verdict> {
    const user = owner === undefined ? undefined : readUser(owner.doc);
    const principal = user === undefined ? undefined : principalOf(user);
    if (principal === undefined || user === undefined || owner === undefined) return invalid;
    return options.factorRule(user, {
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
    });
  }

  const row = store.read(sessionsTable, parts.session);
  return row instanceof Promise ? row.then(judgeSession) : judgeSession(row);
}

/** Writes of `seen` in one idle time, at most. */
const partsOfIdle = 10;
/** Concurrent writes; beyond them the session's next request writes. */
const writesMax = 1000;

type Sightings = {
  /** Returns the `onUse` of a verdict on the session. */
  ofSession(row: Row): (nowMs: number) => void;
  close(): Promise<void>;
};

/**
 * Records when a session was last seen, which limits the idle time of its cookie. Writes happen in the background and at most ten times
 * in the idle time, so that a busy browser costs the store little; a cookie may therefore end up to a tenth early, never late. A write
 * that loses a race is dropped: the session was refreshed, seen by another process, or ended.
 */
function createSightings(options: {
  readonly store: Store;
  readonly observe: SessionsOptions['observe'];
  readonly sessionIdleSeconds: number;
}): Sightings {
  const { store, observe } = options;
  const stepMs = (options.sessionIdleSeconds * 1000) / partsOfIdle;
  const underWay = new Set<Promise<void>>();

  async function write(row: Row, seenAt: number): Promise<void> {
    const next = sessionRow(readSession(row), row.createdAt, seenAt);
    const change = { table: sessionsTable, id: row.id, expect: { rev: row.rev }, next };
    try {
      await store.commit({ changes: [change], events: [] });
    } catch (error) {
      observe({ kind: 'store-failed', what: 'noting when a session was seen', error });
    }
  }

  return {
    ofSession(row) {
      let writtenAt = row.updatedAt;
      return (nowMs) => {
        if (nowMs - writtenAt < stepMs || underWay.size >= writesMax) return;
        writtenAt = nowMs;
        const writing = write(row, nowMs);
        underWay.add(writing);
        void writing.then(() => underWay.delete(writing));
      };
    },
    async close() {
      await Promise.all(underWay);
    },
  };
}
