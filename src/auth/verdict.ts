/**
 * What a verifier says of a credential: good, for whom, until when, and on which rows that rests; or the problem that the caller is
 * told. A good verdict may be used again until it ends or one of its rows changes.
 */
import type { Allowance } from '../http/allowance.ts';
import type { ProblemCode } from '../http/problem-registry.ts';
import type { Scheme } from '../model/credential.ts';
import type { HostRules } from '../model/host-rules.ts';
import type { Authenticated } from '../model/principal.ts';

/** A row as it stood when the credential was verified. */
export type Basis = { readonly table: string; readonly id: string; readonly rev: number };

export type Good = {
  readonly principal: Authenticated;
  readonly scheme: Scheme;
  /** The session that logout ends; null: the credential belongs to none. */
  readonly session: string | null;
  /** The API key; null for the administrator key and for other schemes. */
  readonly key: string | null;
  /** Keys that the key was made with, each with the next; left out where there are none. */
  readonly makers?: readonly string[];
  /** Lists of hosts of the key and of its makers, for tunnels; left out where none of them has one. */
  readonly hosts?: readonly HostRules[];
  /** Milliseconds since the epoch; Infinity where time does not end it. */
  readonly expiresAt: number;
  readonly basis: readonly Basis[];
  /** Called for every use: last use of a key, idle time of a session. Returns at once. */
  readonly onUse?: (nowMs: number) => void;
};

export type Bad = { readonly problem: ProblemCode; readonly allowance?: Allowance };

export type Verdict = Good | Bad;
