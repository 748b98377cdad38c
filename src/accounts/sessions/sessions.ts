/**
 * Sessions as other features see them: opened, refreshed, verified and ended. Changes that must commit with others (the account, its
 * password, the audit trail) are returned to the caller.
 */
import type { Services } from '../../store/capabilities.ts';
import type { Change } from '../../store/store.ts';
import type { User } from '../account-tables.ts';
import type { Audit, From } from '../audit-fact.ts';
import type { FactorRule } from '../second-factor/factor-rule.ts';
import type { AccessTokens } from '../tokens/access-token.ts';
import type { Verdict } from '../verdict.ts';
import type { SameSite } from './cookie.ts';

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

export type Refreshed =
  | { readonly ok: true; readonly content: TokenContent }
  /** `invalid_token`; the reason is not revealed. */
  | { readonly ok: false };

export type Sessions = {
  /**
   * Opens a session for an account.
   * @param how.at milliseconds since the epoch
   * @throws Error for a disabled account, which the caller refuses before
   */
  open(user: User, how: { readonly cookie: boolean; readonly at: number }): Promise<Opened>;
  /**
   * Exchanges a refresh token. One that was exchanged before ends its session, which is audited, unless that was a moment ago.
   * @param from for the audit trail
   * @throws StoreUnavailable
   */
  refresh(refreshToken: string, from: From | null, idempotencyKey?: string): Promise<Refreshed>;
  end(sessionId: string): Promise<readonly Change[]>;
  /** Returns the changes that end all sessions of an account except one. */
  endOfUser(userId: string, except: string | null): Promise<readonly Change[]>;
  verifyToken(token: string): Promise<Verdict>;
  verifyCookie(cookie: string): Verdict | Promise<Verdict>;
  readonly clearCookie: readonly string[];
  close(): Promise<void>;
};

export type SessionsOptions = Services & {
  readonly audit: Pick<Audit, 'entry'>;
  readonly tokens: AccessTokens;
  readonly factorRule: FactorRule;
  readonly refreshTokenSeconds: number;
  readonly refreshReuseSeconds: number;
  readonly sessionIdleSeconds: number;
  readonly sessionSeconds: number;
  readonly sessionsPerAccountMax: number;
  readonly sessionSameSite: SameSite;
};

/** Seconds after which a session that was not seen again is certainly over, for retention. */
export function sessionKeptSeconds(settings: {
  readonly accessTokenSeconds: number;
  readonly refreshTokenSeconds: number;
  readonly sessionIdleSeconds: number;
  readonly sessionSeconds: number;
}): number {
  const { accessTokenSeconds, refreshTokenSeconds, sessionIdleSeconds, sessionSeconds } = settings;
  return Math.min(sessionSeconds, Math.max(accessTokenSeconds, refreshTokenSeconds, sessionIdleSeconds));
}
