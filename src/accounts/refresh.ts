/**
 * Refresh (§2.3, §5.4, RFC 9700 §4.14.2): exchanges a refresh token for the next one and a new access token, once. For a secret that is
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
import { Type } from 'typebox';
import { parseIdempotencyKey } from '../http/syntax/structured-field.ts';
import { actionResource } from '../kernel/action.ts';
import type { Resource } from '../kernel/resource.ts';
import { openText, sealText } from '../kernel/sealed-text.ts';
import type { Services } from '../store/capabilities.ts';
import { tryCommit } from '../store/lines.ts';
import { Overtaken, type Row } from '../store/store.ts';
import type { AccountParts } from './account-parts.ts';
import { accountsTag, tokensOutput } from './account-schemas.ts';
import { digestOf, readUser, sessionsTable, type User, usersTable } from './account-tables.ts';
import { type Audit, type From, fromOf, originOf } from './audit.ts';
import {
  drawSecret,
  endOf,
  endSession,
  formatRefreshToken,
  matches,
  parseRefreshToken,
  type RefreshTokenParts,
  type ReplacedToken,
  readSession,
  type SessionRow,
  sessionRow,
  type TokenContent,
  tokenContent,
} from './sessions/sessions.ts';
import type { AccessTokens } from './tokens/access-token.ts';

const schema = Type.Object({ refreshToken: Type.String() });

/** POST /auth/refresh: the token is its own credential. Every refusal is the same 401. */
export function refreshResource(parts: AccountParts): Resource {
  const { base, settings, addressOf } = parts;
  const refresh = createRefresh(parts);
  return actionResource(
    {
      path: `${base}/auth/refresh`,
      tag: accountsTag,
      ignoresCredentials: true,
      id: 'refresh',
      summary: 'Exchange a refresh token for a new pair of tokens',
      description:
        'A refresh token is exchanged once. For COMITY_REFRESH_REUSE_SECONDS, and as long as the new one is unused for requests with the same Idempotency-Key, it is answered with the same new pair; a later use ends its session in every process immediately.',
      input: { name: 'Refresh', schema, example: { refreshToken: tokensOutput.example.refreshToken } },
      output: tokensOutput,
      codes: ['invalid_token', 'field_invalid'],
      handler: async (ask, { refreshToken }) => {
        const field = ask.request.fields.idempotencyKey;
        const idempotencyKey = field === undefined ? undefined : parseIdempotencyKey(field);
        if (field !== undefined && idempotencyKey === undefined)
          return { refused: { code: 'field_invalid' } };
        const from = fromOf(ask.request, addressOf);
        const refreshed = await refresh(refreshToken, from, idempotencyKey);
        return refreshed.ok ? { content: refreshed.content } : { refused: { code: 'invalid_token' } };
      },
    },
    settings,
  );
}

export type Refreshed =
  | { readonly ok: true; readonly content: TokenContent }
  /** `invalid_token`; the reason is not revealed. */
  | { readonly ok: false };

const refused: Refreshed = { ok: false };

/**
 * Exchanges a refresh token. One that was exchanged before ends its session, which is audited, unless that was a moment ago.
 * @param from for the audit trail
 * @throws StoreUnavailable
 */
export type Refresh = (
  refreshToken: string,
  from: From | null,
  idempotencyKey?: string,
) => Promise<Refreshed>;

export type RefreshParts = Services & {
  readonly tokens: AccessTokens;
  readonly audit: Pick<Audit, 'entry'>;
};

export function createRefresh(parts: RefreshParts): Refresh {
  return async (text, from, idempotencyKey) => {
    const token = parseRefreshToken(text);
    if (token === undefined) return refused;
    const row = { table: sessionsTable, id: token.session };
    const key = idempotencyKey === undefined ? undefined : digestOf(idempotencyKey);
    return parts.store.lines.change(row, () => tryOnce(parts, { token, from, key }));
  };
}

type Exchange = {
  readonly token: RefreshTokenParts;
  readonly from: From | null;
  /** Digest of the Idempotency-Key. */
  readonly key: string | undefined;
};

async function tryOnce(parts: RefreshParts, exchange: Exchange): Promise<Refreshed | Overtaken> {
  const { token, key } = exchange;
  const { store, settings } = parts;
  const { sessionSeconds, refreshTokenSeconds, refreshReuseSeconds } = settings;
  const row = await store.read(sessionsTable, token.session);
  if (row === undefined) return refused;
  const session = readSession(row);
  if (!matches(token.familySecret, session.refresh.family)) return refused;
  const now = parts.clock();
  const isCurrent = matches(token.secret, session.refresh.current);
  const pair = isCurrent ? undefined : currentPair(session, exchange, now - refreshReuseSeconds * 1000);
  if (!isCurrent && pair === undefined) return endReused(parts, session, exchange.from);
  if (now >= endOf(row, sessionSeconds) || now >= session.refresh.issuedAt + refreshTokenSeconds * 1000) {
    return refused;
  }
  const owner = await store.read(usersTable, session.user);
  const user = owner === undefined ? undefined : readUser(owner.doc);
  if (user === undefined || user.disabled) return refused;
  if (pair === undefined) return rotate(parts, { row, session, token, key, user, now });
  const { token: accessToken, expiresAt, secret } = pair;
  const expiresIn = Math.max(0, Math.ceil((expiresAt - now) / 1000));
  const refreshToken = formatRefreshToken({ ...token, secret });
  const account = { id: user.id, email: user.email };
  return { ok: true, content: { token: accessToken, expiresIn, refreshToken, user: account } };
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
  { token, key }: Exchange,
  sinceMs: number,
): Pair | undefined {
  const at = replaced.findIndex(({ digest }) => matches(token.secret, digest));
  const given = replaced[at];
  const isLate = given !== undefined && given.at <= sinceMs;
  if (given === undefined || (isLate && (at > 0 || key === undefined || key !== given.key))) return undefined;
  let secret: string | undefined = token.secret;
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
  readonly token: RefreshTokenParts;
  readonly key: string | undefined;
  readonly user: User;
  readonly now: number;
};

async function rotate(parts: RefreshParts, rotation: Rotation): Promise<Refreshed | Overtaken> {
  const { row, session, token, user, now } = rotation;
  const { store, random, settings, tokens } = parts;
  const secret = drawSecret(random);
  const content = await tokenContent(tokens, {
    user,
    session: row.id,
    refreshToken: formatRefreshToken({ ...token, secret }),
    at: now,
    endsAt: endOf(row, settings.sessionSeconds),
  });
  const { family } = session.refresh;
  const kept = keptForRepetition(parts, rotation, secret, content);
  const refresh = { family, current: digestOf(secret), issuedAt: now, ...kept };
  const next = sessionRow({ ...session, refresh }, row.createdAt, Math.max(now, row.updatedAt));
  const change = { table: sessionsTable, id: row.id, expect: { rev: row.rev }, next };
  const commit = await tryCommit(store, { changes: [change], events: [] });
  return commit instanceof Overtaken ? commit : { ok: true, content };
}

/** The sealed pairs by which exchanged tokens are answered again. Older ones stay for the time of their reuse. */
function keptForRepetition(
  { random, settings: { refreshReuseSeconds } }: RefreshParts,
  { session: { id, refresh }, token: given, key, now }: Rotation,
  secret: string,
  { token, expiresIn }: TokenContent,
): Pick<SessionRow['refresh'], 'access' | 'replaced'> {
  if (refreshReuseSeconds === 0 && key === undefined) return {};
  const access = JSON.stringify({ token, expiresAt: now + expiresIn * 1000 });
  const replaced: ReplacedToken = {
    digest: digestOf(given.secret),
    at: now,
    next: sealText(secret, { secret: given.secret, id, purpose: nextPurpose }, random),
    ...(key === undefined ? {} : { key }),
  };
  const sinceMs = now - refreshReuseSeconds * 1000;
  const older = (refresh.replaced ?? []).filter(({ at }) => at > sinceMs);
  return {
    access: sealText(access, { secret, id, purpose: accessPurpose }, random),
    replaced: [replaced, ...older].slice(0, replacedMax),
  };
}

async function endReused(
  { store, audit, observe }: RefreshParts,
  session: SessionRow,
  from: From | null,
): Promise<Refreshed | Overtaken> {
  const ends = await endSession(store, session.id);
  if (ends.length === 0) return refused;
  const entry = audit.entry({
    type: 'session.reused',
    // The account's owner or a thief.
    actor: null,
    subject: session.id,
    ...(from === null ? { address: null } : originOf(from)),
    detail: { user: session.user },
  });
  const commit = await tryCommit(store, { changes: [...ends, entry], events: [] });
  if (commit instanceof Overtaken) return commit;
  observe({ kind: 'session-reused', session: session.id });
  return refused;
}
