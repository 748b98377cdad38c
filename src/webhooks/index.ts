/**
 * The public interface of `comity/webhooks`: signing and verifying webhooks of the three schemes (§5.6), and receiving
 * those of any sender (§4.14), on any runtime with Web Crypto. It needs neither the server, Node nor another package.
 * Everything not exported here is internal and may change at any time.
 */
export type { JsonOptions } from './exact-json.ts';
export type { PresetName } from './presets.ts';
export type { FetchRequest, HeaderSource, NodeRequest, RawBody } from './receive/message.ts';
export type {
  AdjustedPreset,
  Challenged,
  InsertOutcome,
  MessageStore,
  RefusedMessage,
  Sender,
  VerifiedMessage,
} from './receive/receive.ts';
export {
  type Accepted,
  type MemoryStoreOptions,
  memoryStore,
  type Received,
  type ReceiveOptions,
  receive,
} from './receive/receive.ts';
export type {
  Answers,
  Challenge,
  OpenChallenge,
  Place,
  Proof,
  SenderRule,
  SignedChallenge,
} from './sender-rule.ts';
export type { Ed25519PrivateJwk, Ed25519PublicJwk } from './signature/ed25519.ts';
export type { PublicJwk, PublicKey } from './signature/key-pair.ts';
export type { Body } from './signature/octets.ts';
export {
  type PlainVerdict,
  type SignPlain,
  type SignStandard,
  type SignTimestamped,
  type StandardHeaders,
  type StandardVerdict,
  type StandardVersion,
  signPlain,
  signStandard,
  signTimestamped,
  type TimestampedVerdict,
  type VerifyPlain,
  type VerifyStandard,
  type VerifyTimestamped,
  verifyPlain,
  verifyStandard,
  verifyTimestamped,
} from './signature/schemes.ts';
export type {
  Encoding,
  FieldValue,
  Hash,
  HmacRule,
  JwtAlgorithm,
  JwtRule,
  KeyAlgorithm,
  KeyPairAlgorithm,
  KeyPairRule,
  RefusalReason,
  Refused,
  SignatureRule,
  SignedParts,
  TimestampPlace,
  TimestampUnit,
  TokenRule,
} from './signature/signature-rule.ts';
export type { TimeWindow } from './signature/signed-content.ts';
export {
  createKeyDiscovery,
  type FetchKeys,
  type KeyDiscovery,
  KeyDiscoveryError,
  type KeyDiscoveryOptions,
} from './signature/trusted-keys.ts';
