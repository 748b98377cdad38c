/**
 * The face of `comity/webhooks`: signing and verifying webhooks of the three schemes (§5.6), on any runtime with Web Crypto. Nothing here
 * needs the server, Node or another package. What is not listed is the house's own and may change at any time.
 */
export {
  createKeyDiscovery,
  type FetchKeys,
  type KeyDiscovery,
  KeyDiscoveryError,
  type KeyDiscoveryOptions,
} from './signature/discover-keys.ts';
export type { Ed25519PrivateJwk, Ed25519PublicJwk } from './signature/ed25519.ts';
export type { Body } from './signature/octets.ts';
export {
  type PlainVerdict,
  type SignPlain,
  signPlain,
  type VerifyPlain,
  verifyPlain,
} from './signature/plain.ts';
export type { FieldValue, RefusalReason, Refused } from './signature/refusal.ts';
export {
  type SignStandard,
  type StandardHeaders,
  type StandardVerdict,
  type StandardVersion,
  signStandard,
  type VerifyStandard,
  verifyStandard,
} from './signature/standard.ts';
export type { TimeWindow } from './signature/time-window.ts';
export {
  type SignTimestamped,
  signTimestamped,
  type TimestampedVerdict,
  type VerifyTimestamped,
  verifyTimestamped,
} from './signature/timestamped.ts';
