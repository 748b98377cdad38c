/**
 * What is known of a credential that was found good (§5.1): whom it stands for, how it came, and whether it still holds. Access rules
 * see the principal alone; the rest is for logout, for limits and for what outlives the request.
 */
import type { HostRules } from './host-rules.ts';
import type { Authenticated } from './principal.ts';

/** How a principal was authenticated (§5.2). */
export type Scheme =
  /** The administrator key or an API key, by whatever carrier. */
  | 'key'
  /** An access token of ours. */
  | 'token'
  /** A token of a trusted issuer. */
  | 'issuer'
  | 'password'
  | 'session-cookie';

export type Known = {
  readonly principal: Authenticated;
  readonly scheme: Scheme;
  /** The session that the credential belongs to: what logout ends. */
  readonly session: string | null;
  /** The API key that was used; null for the administrator key and for other schemes. */
  readonly key: string | null;
  /** Keys that the key was made with, each with the next: what holds for one of them holds for this one too. */
  readonly makers?: readonly string[] | undefined;
  /** Hosts that the key may be used to tunnel to, besides what holds for the principal: its own list and those of its makers, all of which hold. */
  readonly hosts?: readonly HostRules[] | undefined;
  /**
   * Where other processes write to the store too: resolves false when one of them has revoked or changed what the credential rests
   * on since it was last looked at. Nothing may be done for the caller, and nothing said, before it resolved.
   */
  readonly confirmed: Promise<boolean> | undefined;
  /** Calls back once when the credential stops being good, by revocation or by time. Returns the way to stop. */
  readonly onEnd: (listener: () => void) => () => void;
};
