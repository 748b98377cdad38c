/**
 * The verdict of a verifier on a credential: good, with its principal, expiry and the rows that it rests on, or bad, with the problem
 * for the response. A good verdict can be reused until it expires or one of its rows changes.
 */
import type { Allowance } from '../http/message.ts';
import type { ProblemCode } from '../http/problem-registry.ts';
import type { HostRules } from '../model/host-rules.ts';
import type { Authenticated, Scheme } from '../model/principal.ts';

export type Basis = { readonly table: string; readonly id: string; readonly rev: number };

export type Good = {
  readonly principal: Authenticated;
  readonly scheme: Scheme;
  /** The session that logout ends; null for a credential without one. */
  readonly session: string | null;
  /** Id of the API key; null for the administrator key and for other schemes. */
  readonly key: string | null;
  /** The key that created this key, the one that created that, and so on; undefined if there is none. */
  readonly makers?: readonly string[];
  /** Host rules of the key and of its makers, for tunnels; undefined if there are none. */
  readonly hosts?: readonly HostRules[];
  /** The account needs a second factor and has none: only the routes that add one accept the credential (§5.8). */
  readonly enrolsOnly?: boolean;
  /** Milliseconds since the epoch; Infinity if it does not expire. */
  readonly expiresAt: number;
  readonly basis: readonly Basis[];
  /** Called for every use, for the last use of a key and the idle time of a session. Returns at once. */
  readonly onUse?: (nowMs: number) => void;
};

export type Bad = { readonly problem: ProblemCode; readonly allowance?: Allowance };

export type Verdict = Good | Bad;
