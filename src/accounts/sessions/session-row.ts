/**
 * The row of a session, on which the access tokens, the refresh token and the cookie of a login depend; removing it revokes all three.
 * `createdAt` is the login, `updatedAt` the last time that the session was seen.
 */
import { timingSafeEqual } from 'node:crypto';
import { keptRow, type NextRow, type Row } from '../../store/store.ts';
import { digestOf } from '../digest.ts';

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
