/**
 * What a login is to the rest of the program: opened, refreshed, verified and ended. Changes are handed to the caller where they must
 * commit with others (the account, its password, the audit trail), so that nothing is ever half done.
 */
import type { Observe } from '../../observe/observation.ts';
import type { Change, Store } from '../../store/store.ts';
import type { Audit } from '../audit-fact.ts';
import type { User } from '../tables.ts';
import type { AccessTokens } from '../tokens/access-token.ts';
import type { Verdict } from '../verdict.ts';
import type { SameSite } from './cookie.ts';

/** The content that a login, a registration and a refresh answer with (§2.3). */
export type TokenContent = {
  readonly token: string;
  /** Seconds. */
  readonly expiresIn: number;
  readonly refreshToken: string;
  readonly user: { readonly id: string; readonly email: string };
};

export type Opened = {
  /** To be committed by the caller, in one unit with its own. Superseded: everything is done anew, `open` as well. */
  readonly changes: readonly Change[];
  readonly session: string;
  readonly content: TokenContent;
  /** Set-Cookie, as name and value; empty where no cookie was asked for. */
  readonly fields: readonly string[];
};

export type Refreshed =
  | { readonly ok: true; readonly content: TokenContent }
  /** `invalid_token`: which of the reasons it was is not told. */
  | { readonly ok: false };

export type Sessions = {
  /**
   * A new session of an account that may log in.
   * @param how.at milliseconds since the epoch
   * @throws Error for a disabled account, which the caller has to refuse before
   */
  open(user: User, how: { readonly cookie: boolean; readonly at: number }): Promise<Opened>;
  /**
   * Uses a refresh token up. One that was used before ends its session, which is audited.
   * @param address where the request came from, for the audit trail @throws StoreUnavailable
   */
  refresh(refreshToken: string, address: string | null): Promise<Refreshed>;
  /** What ends the session; nothing where it has ended already. */
  end(sessionId: string): Promise<readonly Change[]>;
  /** What ends the sessions of an account, but for one where `except` names it. */
  endOfUser(userId: string, except: string | null): Promise<readonly Change[]>;
  /** An access token of ours; every refusal is `invalid_token`. */
  verifyToken(token: string): Promise<Verdict>;
  /** The value of a session cookie; every refusal is `invalid_token`. */
  verifyCookie(cookie: string): Verdict | Promise<Verdict>;
  /** Set-Cookie that makes a browser forget its session, as name and value. */
  readonly clearCookie: readonly string[];
  /** Waits for what is written in the background. */
  close(): Promise<void>;
};

export type SessionsOptions = {
  readonly store: Store;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  readonly random: (count: number) => Buffer;
  readonly newId: () => string;
  readonly observe: Observe;
  readonly audit: Pick<Audit, 'entry'>;
  readonly tokens: AccessTokens;
  readonly refreshTokenSeconds: number;
  readonly sessionIdleSeconds: number;
  readonly sessionSeconds: number;
  readonly sessionsPerAccountMax: number;
  readonly sessionSameSite: SameSite;
};

/**
 * Seconds after its last sight from which on nothing of a session can be good any more: what retention needs to know.
 */
export function sessionKeptSeconds(settings: {
  readonly accessTokenSeconds: number;
  readonly refreshTokenSeconds: number;
  readonly sessionIdleSeconds: number;
  readonly sessionSeconds: number;
}): number {
  const { accessTokenSeconds, refreshTokenSeconds, sessionIdleSeconds, sessionSeconds } = settings;
  return Math.min(sessionSeconds, Math.max(accessTokenSeconds, refreshTokenSeconds, sessionIdleSeconds));
}
