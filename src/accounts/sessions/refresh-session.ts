/**
 * Exchanges a refresh token for the next one and a new access token (§5.4, RFC 9700 §4.14.2). Each is exchanged once. For a secret that is
 * not the current one, the family secret decides, which all refresh tokens of a session share:
 *
 * - right, and exchanged less than `refreshReuseSeconds` ago, or exchanged last and with the same Idempotency-Key: the answer was lost, or
 *   another tab was faster. The response is the current pair, which the stored session contains sealed under the secret of the exchanged
 *   token, so that neither a reader of the store nor a holder of an older token gets it.
 * - right otherwise: the token was copied, and the session ends.
 * - wrong: the client never had a token of the session, whose id is not secret; invalid, and nothing else happens.
 *
 * Two holders of a token who both use it in that time have the same next one, so a thief is discovered when both have used that.
 */

import { openText, sealText } from '../../kernel/sealed-text.ts';
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
  type ReplacedToken,
  readSession,
  type SessionRow,
  sessionRow,
} from './session-row.ts';
import type { Refreshed, SessionsOptions, TokenContent } from './sessions.ts';

const refused: Refreshed = { ok: false };

export async function refreshSession(
  options: SessionsOptions,
  text: string,
  { from, idempotencyKey }: { readonly from: From | null; readonly idempotencyKey: string | undefined },
): Promise<Refreshed> {
  const parts = parseRefreshToken(text);
  if (parts === undefined) return refused;
  const row = { table: sessionsTable, id: parts.session };
  const key = idempotencyKey === undefined ? undefined : digestOf(idempotencyKey);
  return options.store.lines.change(row, () => tryOnce(options, { parts, from, key }));
}

type Exchange = {
  readonly parts: RefreshParts;
  readonly from: From | null;
  /** Digest of the Idempotency-Key. */
  readonly key: string | undefined;
};

async function tryOnce(options: SessionsOptions, exchange: Exchange): Promise<Refreshed | Overtaken> {
  const { parts, key } = exchange;
  const { store, sessionSeconds, refreshTokenSeconds } = options;
  const row = await store.read(sessionsTable, parts.session);
  if (row === undefined) return refused;
  const session = readSession(row);
  if (!matches(parts.familySecret, session.refresh.family)) return refused;
  const now = options.clock();
  const isCurrent = matches(parts.secret, session.refresh.current);
  const pair = isCurrent
    ? undefined
    : currentPair(session, exchange, now - options.refreshReuseSeconds * 1000);
  if (!isCurrent && pair === undefined) return endReused(options, session, exchange.from);
  if (now >= endOf(row, sessionSeconds) || now >= session.refresh.issuedAt + refreshTokenSeconds * 1000) {
    return refused;
  }
  const owner = await store.read(usersTable, session.user);
  const user = owner === undefined ? undefined : readUser(owner.doc);
  if (user === undefined || user.disabled) return refused;
  if (pair === undefined) return rotate(options, { row, session, parts, key, user, now });
  const { token, expiresAt, secret } = pair;
  const expiresIn = Math.max(0, Math.ceil((expiresAt - now) / 1000));
  const refreshToken = formatRefreshToken({ ...parts, secret });
  return { ok: true, content: { token, expiresIn, refreshToken, user: { id: user.id, email: user.email } } };
}

type Pair = { readonly token: string; readonly expiresAt: number; readonly secret: string };

const nextPurpose = 'comity next refresh token';
const accessPurpose = 'comity access token';
/** Replaced tokens that a session keeps. A client with several tabs exchanges one token several times, hardly several tokens in a few seconds. */
const replacedMax = 4;

/**
 * Follows the chain of secrets from an exchanged token to the current one.
 * @param sinceMs of tokens that were exchanged earlier, only the last one is answered, with its Idempotency-Key: an older one's pair is in use
 */
function currentPair(
  { id, refresh: { replaced = [], current, access } }: SessionRow,
  { parts, key }: Exchange,
  sinceMs: number,
): Pair | undefined {
  const at = replaced.findIndex(({ digest }) => matches(parts.secret, digest));
  const given = replaced[at];
  const isLate = given !== undefined && given.at <= sinceMs;
  if (given === undefined || (isLate && (at > 0 || key === undefined || key !== given.key))) return undefined;
  let secret: string | undefined = parts.secret;
  for (const { next } of replaced.slice(0, at + 1).reverse()) {
    if (secret !== undefined) secret = openText(next, { secret, id, purpose: nextPurpose });
  }
  if (secret === undefined || access === undefined || !matches(secret, current)) return undefined;
  const opened = openText(access, { secret, id, purpose: accessPurpose });
  return opened === undefined ? undefined : { ...(JSON.parse(opened) as Omit<Pair, 'secret'>), secret };
}

type Rotation = {
  readonly row: Row;
  readonly session: SessionRow;
  readonly parts: RefreshParts;
  readonly key: string | undefined;
  readonly user: User;
  readonly now: number;
};

async function rotate(options: SessionsOptions, rotation: Rotation): Promise<Refreshed | Overtaken> {
  const { row, session, parts, user, now } = rotation;
  const secret = drawSecret(options.random);
  const content = await tokenContent(options.tokens, {
    user,
    session: row.id,
    refreshToken: formatRefreshToken({ ...parts, secret }),
    at: now,
    endsAt: endOf(row, options.sessionSeconds),
  });
  const { family } = session.refresh;
  const kept = keptForRepetition(options, rotation, secret, content);
  const refresh = { family, current: digestOf(secret), issuedAt: now, ...kept };
  const next = sessionRow({ ...session, refresh }, row.createdAt, Math.max(now, row.updatedAt));
  const change = { table: sessionsTable, id: row.id, expect: { rev: row.rev }, next };
  const commit = await tryCommit(options.store, { changes: [change], events: [] });
  return commit instanceof Overtaken ? commit : { ok: true, content };
}

/** The sealed pairs by which exchanged tokens are answered again. Older ones stay for the time of their reuse. */
function keptForRepetition(
  { random, refreshReuseSeconds }: SessionsOptions,
  { session: { id, refresh }, parts, key, now }: Rotation,
  secret: string,
  { token, expiresIn }: TokenContent,
): Pick<SessionRow['refresh'], 'access' | 'replaced'> {
  if (refreshReuseSeconds === 0 && key === undefined) return {};
  const access = JSON.stringify({ token, expiresAt: now + expiresIn * 1000 });
  const given: ReplacedToken = {
    digest: digestOf(parts.secret),
    at: now,
    next: sealText(secret, { secret: parts.secret, id, purpose: nextPurpose }, random),
    ...(key === undefined ? {} : { key }),
  };
  const sinceMs = now - refreshReuseSeconds * 1000;
  const older = (refresh.replaced ?? []).filter(({ at }) => at > sinceMs);
  return {
    access: sealText(access, { secret, id, purpose: accessPurpose }, random),
    replaced: [given, ...older].slice(0, replacedMax),
  };
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
