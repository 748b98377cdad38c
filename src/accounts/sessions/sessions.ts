/**
 * Sessions: opened by logins, verified by access token and by cookie, and ended. Changes that must commit with others (the account, its
 * password, the audit trail) are returned to the caller.
 *
 * A session is always opened with a new id and new secrets (§2.3, §5.4), so that an attacker cannot fix the session that a user logs in to.
 * An account has at most `sessionsPerAccountMax` sessions; the same unit removes the oldest.
 */
import { timingSafeEqual } from 'node:crypto';
import type { Settings } from '../../config/settings.ts';
import { idField, ownerField } from '../../model/field.ts';
import type { Services } from '../../store/capabilities.ts';
import { pagesOf } from '../../store/in-batches.ts';
import {
  type Change,
  keptRow,
  type MaybePromise,
  type NextRow,
  type Plan,
  type Row,
  type Store,
} from '../../store/store.ts';
import { digestOf, readUser, sessionsTable, type User, usersTable } from '../account-tables.ts';
import type { FactorRule } from '../second-factor/factor-row.ts';
import type { AccessTokens } from '../tokens/access-token.ts';
import { principalOf } from '../users/user-row.ts';
import type { Bad, Verdict } from '../verdict.ts';
import { clearSessionCookie, parseSessionCookie, setSessionCookie } from './cookie.ts';

/** The response content of a login, a registration and a refresh (§2.3). */
export type TokenContent = {
  readonly token: string;
  /** Seconds. */
  readonly expiresIn: number;
  readonly refreshToken: string;
  readonly user: { readonly id: string; readonly email: string };
};

export type Opened = {
  /** For the caller's unit. If that is superseded, the caller repeats everything, `open` included. */
  readonly changes: readonly Change[];
  readonly session: string;
  readonly content: TokenContent;
  /** Set-Cookie, as name and value; empty if no cookie was requested. */
  readonly fields: readonly string[];
};

export type Sessions = {
  /**
   * Opens a session for an account.
   * @param how.at milliseconds since the epoch
   * @throws Error for a disabled account, which the caller refuses before
   */
  open(user: User, how: { readonly cookie: boolean; readonly at: number }): Promise<Opened>;
  end(sessionId: string): Promise<readonly Change[]>;
  /** Returns the changes that end all sessions of an account except one. */
  endOfUser(userId: string, except: string | null): Promise<readonly Change[]>;
  verifyToken(token: string): Promise<Verdict>;
  verifyCookie(cookie: string): Verdict | Promise<Verdict>;
  readonly clearCookie: readonly string[];
  close(): Promise<void>;
};

type SessionParts = Services & { readonly tokens: AccessTokens; readonly factorRule: FactorRule };

export function createSessions(services: Services, tokens: AccessTokens, factorRule: FactorRule): Sessions {
  const { store, settings } = services;
  const parts = { ...services, tokens, factorRule };
  const sightings = createSightings(services);
  return {
    open: openSession(parts),
    end: (sessionId) => endSession(store, sessionId),
    endOfUser: endSessionsOfUser(store),
    verifyToken: (token) => verifyAccessToken(parts, token),
    verifyCookie: (cookie) => verifySessionCookie(parts, sightings, cookie),
    clearCookie: clearSessionCookie(settings.sessionSameSite),
    close: sightings.close,
  };
}

const invalid: Bad = { problem: 'invalid_token' };

/**
 * Verifies an access token of Comity (§5.1, §5.2). Besides a valid signature, its session and account must exist, and the principal has
 * the account's current rights. So logout ends a token at once, and a revoked role is gone before the token expires.
 */
async function verifyAccessToken(parts: SessionParts, token: string): Promise<Verdict> {
  const { store, clock, settings, tokens, factorRule } = parts;
  const claims = await tokens.verify(token);
  if (claims === undefined) return invalid;
  const [session, owner] = await Promise.all([
    store.read(sessionsTable, claims.session),
    store.read(usersTable, claims.user),
  ]);
  if (session === undefined || owner === undefined) return invalid;
  if (readSession(session).user !== claims.user) return invalid;
  const user = readUser(owner.doc);
  const principal = principalOf(user);
  const expiresAt = Math.min(claims.expiresAt, endOf(session, settings.sessionSeconds));
  if (principal === undefined || clock() >= expiresAt) return invalid;
  return factorRule(user, {
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
  { store, clock, settings, factorRule }: SessionParts,
  sightings: Sightings,
  value: string,
): MaybePromise<Verdict> {
  const parts = parseSessionCookie(value);
  if (parts === undefined) return invalid;

  function judgeSession(row: Row | undefined): MaybePromise<Verdict> {
    if (row === undefined) return invalid;
    const session = readSession(row);
    if (session.cookie === null || parts === undefined || !matches(parts.secret, session.cookie))
      return invalid;
    const expiresAt = Math.min(
      endOf(row, settings.sessionSeconds),
      row.updatedAt + settings.sessionIdleSeconds * 1000,
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
    return factorRule(user, {
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
function createSightings({ store, observe, settings }: Services): Sightings {
  const stepMs = (settings.sessionIdleSeconds * 1000) / partsOfIdle;
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

/** Sessions that one login removes; only after the setting was lowered are there more, which the next logins remove. */
const removedMax = 100;

function openSession({ store, random, newId, settings, tokens }: SessionParts): Sessions['open'] {
  const { sessionSeconds, sessionSameSite, sessionsPerAccountMax } = settings;
  return async (user, { cookie, at }) => {
    const id = `ses_${newId()}`;
    const familySecret = drawSecret(random);
    const secret = drawSecret(random);
    const cookieSecret = cookie ? drawSecret(random) : null;
    const session: SessionRow = {
      id,
      user: user.id,
      refresh: { family: digestOf(familySecret), current: digestOf(secret), issuedAt: at },
      cookie: cookieSecret === null ? null : digestOf(cookieSecret),
    };
    const opened: Change = {
      table: sessionsTable,
      id,
      expect: { absent: true },
      next: sessionRow(session, at, at),
    };
    const endsAt = at + sessionSeconds * 1000;
    const refreshToken = formatRefreshToken({ session: id, familySecret, secret });
    const content = await tokenContent(tokens, { user, session: id, refreshToken, at, endsAt });
    const changes = [opened, ...(await makeRoom(store, user.id, sessionsPerAccountMax))];
    const fields =
      cookieSecret === null
        ? []
        : setSessionCookie({ session: id, secret: cookieSecret }, sessionSeconds, sessionSameSite);
    return { changes, session: id, content, fields } satisfies Opened;
  };
}

/** Removes all but the newest sessions; ids grow with time. */
async function makeRoom(
  store: Store,
  user: string,
  sessionsPerAccountMax: number,
): Promise<readonly Change[]> {
  const newestFirst = sessionsOfUser(store, user, 'desc', removedMax);
  const page = await newestFirst.page({ from: 'offset', offset: sessionsPerAccountMax - 1 });
  const removals = await Promise.all(
    page.docs.map((doc) => endSession(store, (JSON.parse(doc) as SessionRow).id)),
  );
  return removals.flat();
}

const pageRowsMax = 100;

/**
 * Returns the change that removes the session; empty if it does not exist. The change names the revision, so that a session that was
 * refreshed or seen meanwhile is not missed: the unit is superseded and the caller retries.
 */
export async function endSession(store: Store, id: string): Promise<readonly Change[]> {
  const row = await store.read(sessionsTable, id);
  return row === undefined ? [] : [{ table: sessionsTable, id, expect: { rev: row.rev }, next: null }];
}

function endSessionsOfUser(store: Store): Sessions['endOfUser'] {
  return async (user, except) => {
    const changes: Change[] = [];
    const plan = sessionsOfUser(store, user, 'asc', pageRowsMax);
    for await (const { docs } of pagesOf(plan)) {
      const ids = docs.map((doc) => (JSON.parse(doc) as SessionRow).id).filter((id) => id !== except);
      const ends = await Promise.all(ids.map((id) => endSession(store, id)));
      changes.push(...ends.flat());
    }
    return changes;
  };
}

/** Lists the sessions of one account in the order of their logins, by an index. @param limit rows on a page */
export function sessionsOfUser(store: Store, user: string, direction: 'asc' | 'desc', limit: number): Plan {
  return store.plan({
    table: sessionsTable,
    filter: { op: 'eq', field: ownerField, value: user },
    sort: [{ field: idField, direction }],
    limit,
  });
}

type ContentParts = {
  readonly user: User;
  readonly session: string;
  readonly refreshToken: string;
  /** Milliseconds since the epoch, like `endsAt`. */
  readonly at: number;
  /** The end of the session, which the token does not outlive. */
  readonly endsAt: number;
};

/** Creates the content of a login, a registration and a refresh (§2.3). @throws Error for a disabled account */
export async function tokenContent(tokens: AccessTokens, parts: ContentParts): Promise<TokenContent> {
  const { user, session, refreshToken, at, endsAt } = parts;
  const principal = principalOf(user);
  if (principal === undefined) throw new Error('an access token requires an active account');
  const claims = { user: user.id, session, scopes: [...principal.scopes] };
  const { token, expiresIn } = await tokens.sign(claims, at, endsAt);
  return { token, expiresIn, refreshToken, user: { id: user.id, email: user.email } };
}

type Lifetimes = Pick<
  Settings,
  'accessTokenSeconds' | 'refreshTokenSeconds' | 'sessionIdleSeconds' | 'sessionSeconds'
>;

/** Seconds after which a session that was not seen again is certainly over, for retention. */
export function sessionKeptSeconds(lifetimes: Lifetimes): number {
  const { accessTokenSeconds, refreshTokenSeconds, sessionIdleSeconds, sessionSeconds } = lifetimes;
  return Math.min(sessionSeconds, Math.max(accessTokenSeconds, refreshTokenSeconds, sessionIdleSeconds));
}

// The row of a session, on which the access tokens, the refresh token and the cookie of a login depend; removing it revokes all three.
// `createdAt` is the login, `updatedAt` the last time that the session was seen.

export type SessionRow = {
  readonly id: string;
  readonly user: string;
  readonly refresh: {
    /** Digest of the secret that all refresh tokens of the session share. */
    readonly family: string;
    readonly current: string;
    /** Milliseconds since the epoch. */
    readonly issuedAt: number;
    /** The access token that came with the current refresh token, sealed under the secret of that; absent without `replaced`. */
    readonly access?: string;
    /** The last refresh tokens that were exchanged, which are answered with the current pair; the newest comes first. */
    readonly replaced?: readonly ReplacedToken[];
  };
  /** Digest of the secret in the cookie; null if the login requested none. */
  readonly cookie: string | null;
};

export type ReplacedToken = {
  /** Hash of its secret. */
  readonly digest: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** The secret that replaced it, sealed under its own. */
  readonly next: string;
  /** Digest of the Idempotency-Key of the exchange. */
  readonly key?: string;
};

export function readSession(row: Row): SessionRow {
  return JSON.parse(row.doc) as SessionRow;
}

/** @param seenAt milliseconds since the epoch, not before the stored time */
export function sessionRow(session: SessionRow, createdAt: number, seenAt: number): NextRow {
  return keptRow(JSON.stringify(session), session.user, createdAt, seenAt);
}

/** The absolute end of the session, in milliseconds since the epoch. */
export function endOf(row: Pick<Row, 'createdAt'>, sessionSeconds: number): number {
  return row.createdAt + sessionSeconds * 1000;
}

/** Draws 256 random bits for a token or cookie. */
export function drawSecret(random: (count: number) => Buffer): string {
  return random(32).toString('base64url');
}

export function matches(secret: string, digest: string): boolean {
  const given = Buffer.from(digestOf(secret));
  const kept = Buffer.from(digest);
  return given.length === kept.length && timingSafeEqual(given, kept);
}

export type RefreshTokenParts = {
  readonly session: string;
  readonly familySecret: string;
  readonly secret: string;
};

const refreshShape = /^rt_(ses_[0-9a-z]{26})\.([A-Za-z0-9_-]{43})\.([A-Za-z0-9_-]{43})$/;
const refreshCharacters = 'rt_'.length + 'ses_'.length + 26 + 2 * ('.'.length + 43);

export function formatRefreshToken(parts: RefreshTokenParts): string {
  return `rt_${parts.session}.${parts.familySecret}.${parts.secret}`;
}

export function parseRefreshToken(text: string): RefreshTokenParts | undefined {
  if (text.length !== refreshCharacters) return undefined;
  const [, session, familySecret, secret] = refreshShape.exec(text) ?? [];
  if (session === undefined || familySecret === undefined || secret === undefined) return undefined;
  return { session, familySecret, secret };
}
