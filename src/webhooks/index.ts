/**
 * The public interface of `comity/webhooks`: signing and verifying webhooks of the three schemes (§5.6), and receiving
 * those of any sender (§4.14), on any runtime with Web Crypto. It needs neither the server, Node nor another package.
 * Everything not exported here is internal and may change at any time.
 */
export type { Challenge, Place, PresetName, SenderRule } from './presets.ts';
export type { HeaderSource } from './receive/message.ts';
export type { InsertOutcome, MessageStore, VerifiedMessage } from './receive/message-store.ts';
export { type MemoryStoreOptions, memoryStore } from './receive/message-store.ts';
export type { FetchRequest, NodeRequest, RawBody } from './receive/raw-body.ts';
export type { Challenged, RefusedMessage } from './receive/receive.ts';
export { type Accepted, type Received, type ReceiveOptions, receive } from './receive/receive.ts';
export type { AdjustedPreset, Sender } from './receive/sender.ts';
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
export type { Hash, HmacRule, SignatureRule, TokenRule } from './signature/signature-rule.ts';
export type { TimeWindow } from './signature/signed-fields.ts';
export {
  type SignStandard,
  type StandardHeaders,
  type StandardVerdict,
  type StandardVersion,
  signStandard,
  type VerifyStandard,
  verifyStandard,
} from './signature/standard.ts';
export {
  type SignTimestamped,
  signTimestamped,
  type TimestampedVerdict,
  type VerifyTimestamped,
  verifyTimestamped,
} from './signature/timestamped.ts';
export {
  createKeyDiscovery,
  type FetchKeys,
  type KeyDiscovery,
  KeyDiscoveryError,
  type KeyDiscoveryOptions,
} from './signature/trusted-keys.ts';
