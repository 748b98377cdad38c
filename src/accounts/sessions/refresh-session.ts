/**
 * Exchanges a refresh token for the next one and a new access token (§5.4, RFC 9700 §4.14.2). Each works once. For a secret that is not
 * the current one, the family secret decides, which all refresh tokens of a session share:
 *
 * - right: the token was used before, so it was copied, and the session ends. Of two concurrent uses one succeeds and the other counts
 *   as reuse.
 * - wrong: the client never had a token of the session, whose id is not secret; invalid, and nothing else happens.
 *
 * A client that lost the response of a refresh must log in again: tolerating a repetition would tolerate a fast thief.
 */

import { tryCommit } from '../../store/lines.ts';
import { Overtaken, type Row } from '../../store/store.ts';
import { readUser, sessionsTable, type User, usersTable } from '../account-tables.ts';
import { type From, originOf } from '../audit-fact.ts';
import { digestOf } from '../digest.ts';
import { endSession, tokenContent } from './open-session.ts';
import {
  drawSecret,
  endOf,
  formatRefreshToken,
  matches,
  parseRefreshToken,
  type RefreshParts,
  readSession,
  type SessionRow,
  sessionRow,
} from './session-row.ts';
import type { Refreshed, SessionsOptions } from './sessions.ts';

const refused: Refreshed = { ok: false };

export async function refreshSession(
  options: SessionsOptions,
  text: string,
  from: From | null,
): Promise<Refreshed> {
  const parts = parseRefreshToken(text);
  if (parts === undefined) return refused;
  const row = { table: sessionsTable, id: parts.session };
  return options.store.lines.change(row, () => tryOnce(options, parts, from));
}

async function tryOnce(
  options: SessionsOptions,
  parts: RefreshParts,
  from: From | null,
): Promise<Refreshed | Overtaken> {
  const { store, sessionSeconds, refreshTokenSeconds } = options;
  const row = await store.read(sessionsTable, parts.session);
  if (row === undefined) return refused;
  const session = readSession(row);
  if (!matches(parts.familySecret, session.refresh.family)) return refused;
  if (!matches(parts.secret, session.refresh.current)) return endReused(options, session, from);
  const now = options.clock();
  if (now >= endOf(row, sessionSeconds) || now >= session.refresh.issuedAt + refreshTokenSeconds * 1000) {
    return refused;
  }
  const owner = await store.read(usersTable, session.user);
  const user = owner === undefined ? undefined : readUser(owner.doc);
  if (user === undefined || user.disabled) return refused;
  return rotate(options, { row, session, parts, user, now });
}

type Rotation = {
  readonly row: Row;
  readonly session: SessionRow;
  readonly parts: RefreshParts;
  readonly user: User;
  readonly now: number;
};

async function rotate(options: SessionsOptions, rotation: Rotation): Promise<Refreshed | Overtaken> {
  const { row, session, parts, user, now } = rotation;
  const secret = drawSecret(options.random);
  const refresh = { ...session.refresh, current: digestOf(secret), issuedAt: now };
  const next = sessionRow({ ...session, refresh }, row.createdAt, Math.max(now, row.updatedAt));
  const change = { table: sessionsTable, id: row.id, expect: { rev: row.rev }, next };
  const content = await tokenContent(options.tokens, {
    user,
    session: row.id,
    refreshToken: formatRefreshToken({ ...parts, secret }),
    at: now,
    endsAt: endOf(row, options.sessionSeconds),
  });
  const commit = await tryCommit(options.store, { changes: [change], events: [] });
  return commit instanceof Overtaken ? commit : { ok: true, content };
}

async function endReused(
  options: SessionsOptions,
  session: SessionRow,
  from: From | null,
): Promise<Refreshed | Overtaken> {
  const ends = await endSession(options.store, session.id);
  if (ends.length === 0) return refused;
  const entry = options.audit.entry({
    type: 'session.reused',
    // The account's owner or a thief.
    actor: null,
    subject: session.id,
    ...(from === null ? { address: null } : originOf(from)),
    detail: { user: session.user },
  });
  const commit = await tryCommit(options.store, { changes: [...ends, entry], events: [] });
  if (commit instanceof Overtaken) return commit;
  options.observe({ kind: 'session-reused', session: session.id });
  return refused;
}
