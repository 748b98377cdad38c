/**
 * A refresh token is exchanged for the next one and a new access token (§5.4, RFC 9700 §4.14.2). Each works once. What follows from a
 * secret that is not the current one depends on the family's secret, which every token of the session holds:
 *
 *   right   the token was good once and is used again: it was copied, by whom nobody can tell, so the session ends. Of two uses at
 *           the same moment one wins and the other counts as this.
 *   wrong   the bearer never had a token of the session: invalid, and nothing happens to it. Ids of sessions are no secret.
 *
 * Whoever lost the answer of a refresh logs in again: to forgive a repetition would be to forgive a thief who is quick.
 */

import { tryCommit } from '../../store/lines.ts';
import { Overtaken, type Row } from '../../store/store.ts';
import { digestOf } from '../digest.ts';
import { readUser, sessionsTable, type User, usersTable } from '../tables.ts';
import { endSession } from './end.ts';
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
import { tokenContent } from './token-content.ts';

const refused: Refreshed = { ok: false };

export async function refreshSession(
  options: SessionsOptions,
  text: string,
  address: string | null,
): Promise<Refreshed> {
  const parts = parseRefreshToken(text);
  if (parts === undefined) return refused;
  const row = { table: sessionsTable, id: parts.session };
  return options.store.lines.change(row, () => tryOnce(options, parts, address));
}

async function tryOnce(
  options: SessionsOptions,
  parts: RefreshParts,
  address: string | null,
): Promise<Refreshed | Overtaken> {
  const { store, sessionSeconds, refreshTokenSeconds } = options;
  const row = await store.read(sessionsTable, parts.session);
  if (row === undefined) return refused;
  const session = readSession(row);
  if (!matches(parts.familySecret, session.refresh.family)) return refused;
  if (!matches(parts.secret, session.refresh.current)) return endReused(options, session, address);
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
  address: string | null,
): Promise<Refreshed | Overtaken> {
  const ends = await endSession(options.store, session.id);
  if (ends.length === 0) return refused;
  const entry = options.audit.entry({
    type: 'session.reused',
    // The account's owner or a thief.
    actor: null,
    subject: session.id,
    address,
    detail: { user: session.user },
  });
  const commit = await tryCommit(options.store, { changes: [...ends, entry], events: [] });
  if (commit instanceof Overtaken) return commit;
  options.observe({ kind: 'session-reused', session: session.id });
  return refused;
}
