/**
 * Verifies signatures (§4.14.2, §5.6) by a rule that says how the sender signs. Synchronous if the supplied
 * cryptography is. Every signature of the rule's version is tried with every secret, and compared in constant time. It
 * does not read the content of a message, and does not detect repetitions. signed-content.ts reads the field and leaves other versions out.
 */
import { verifyJwt } from './jwt.ts';
import type { MacPrimitives, MaybePromise, PreparedKeys } from './mac-keys.ts';
import { decodeHex, joinOctets, octetsOf, sameOctets } from './octets.ts';
import {
  type HmacRule,
  isKeyPair,
  type KeyPairRule,
  type RuleVerdict,
  refused,
  refuseField,
  type SignatureRule,
  type TokenRule,
} from './signature-rule.ts';
import {
  type BodyCover,
  bodyCoverOf,
  placeReader,
  readSignedFields,
  type SignedContent,
  type SignedFields,
  type SignedMessage,
  signedContents,
  type TimeWindow,
  toleranceSecondsDefault,
} from './signed-content.ts';
import type { VerifyByKeys } from './trusted-keys.ts';

const otherRule = 'the keys were prepared for another rule';
const sha256Bytes = 32;

export type VerifyByRule<Key> = {
  readonly primitives: MacPrimitives<Key>;
  /** Overrides the rule's. */
  readonly toleranceSeconds?: number | undefined;
  /** Milliseconds since the epoch; default: the runtime's clock. */
  readonly nowMs?: number | undefined;
  /**
   * Returns true if a public key of the sender made one of the signatures (trusted-keys.ts); without it they are
   * ignored.
   */
  readonly byKeys?: VerifyByKeys | undefined;
};

/**
 * Verifies that the sender signed this message, within the tolerance. Reports `stale` and `ahead` only for valid
 * signatures. Never throws because of the message.
 *
 * @param keys keys that were prepared for this rule
 * @throws TypeError for an invalid tolerance, and for a missing URL if the rule signs it
 */
export function verifyByRule<Key>(
  rule: SignatureRule,
  message: SignedMessage,
  keys: PreparedKeys<Key>,
  options: VerifyByRule<Key>,
): MaybePromise<RuleVerdict> {
  if (rule.kind === 'token') return verifyToken(rule, message, keys);
  if (rule.kind === 'jwt') {
    if (keys.kind !== 'jwt') throw new TypeError(otherRule);
    const { primitives, byKeys, toleranceSeconds = rule.toleranceSeconds, nowMs = Date.now() } = options;
    return verifyJwt({ rule, message, keys, primitives, byKeys, toleranceSeconds, nowMs });
  }
  if (keys.kind !== 'signed') throw new TypeError(otherRule);
  const fields = readSignedFields(rule, placeReader(message), keys.template.idEnd);
  if (typeof fields === 'string') return refused(fields);
  const cover = bodyCoverOf(rule, keys.template, message);
  const contents = signedContents(keys.template, message, fields, cover);
  if (contents === 'malformed') return refused('malformed');
  const verification: Verification<Key> = {
    rule,
    message,
    fields,
    cover,
    contents,
    keys: keys.keys,
    options,
  };
  const secret = findSecret(verification, 0);
  return secret instanceof Promise
    ? secret.then((found) => conclude(verification, found))
    : conclude(verification, secret);
}

type Verification<Key> = {
  readonly rule: HmacRule | KeyPairRule;
  readonly message: SignedMessage;
  readonly fields: SignedFields;
  readonly cover: BodyCover;
  readonly contents: readonly SignedContent[];
  readonly keys: readonly Key[];
  readonly options: VerifyByRule<Key>;
};

/**
 * Returns the index of the first secret that made one of the signatures. @param from index of the try: each secret with
 * each content
 */
function findSecret<Key>(verification: Verification<Key>, from: number): MaybePromise<number | undefined> {
  const { rule, fields, contents, keys, options } = verification;
  if (isKeyPair(rule) || fields.signatures.length === 0) return undefined;
  for (let at = from; at < keys.length * contents.length; at += 1) {
    const index = Math.floor(at / contents.length);
    const key = keys[index];
    const content = contents[at % contents.length];
    if (key === undefined || content === undefined) return undefined;
    const mac = options.primitives.mac(key, rule.hash, content);
    if (mac instanceof Promise) {
      return mac.then((made) =>
        isAmong(fields.signatures, made) ? index : findSecret(verification, at + 1),
      );
    }
    if (isAmong(fields.signatures, mac)) return index;
  }
  return undefined;
}

/** @param secret undefined: no secret matches; a public key may */
function conclude<Key>(
  verification: Verification<Key>,
  secret: number | undefined,
): MaybePromise<RuleVerdict> {
  if (secret !== undefined) return checkCover(verification, secret);
  const { fields, options } = verification;
  if (options.byKeys === undefined || fields.asymmetric.length === 0) return refused('no-match');
  return madeByKeys(verification, options.byKeys).then((made) =>
    made ? checkCover(verification, null) : refused('no-match'),
  );
}

async function madeByKeys<Key>(
  { rule, message, fields, contents }: Verification<Key>,
  byKeys: NonNullable<VerifyByRule<Key>['byKeys']>,
): Promise<boolean> {
  const place = rule.kind === 'hmac' ? undefined : rule.certificateUrl;
  const written = place === undefined ? undefined : placeReader(message)(place);
  const certificateUrl = typeof written === 'string' ? written : undefined;
  for (const content of contents) {
    const signed = { signatures: fields.asymmetric, content: joinOctets(content), certificateUrl };
    if (await byKeys(signed)) return true;
  }
  return false;
}

/** Compares the body with the digest in the signed URL, if that covers it. */
function checkCover<Key>(verification: Verification<Key>, secret: number | null): MaybePromise<RuleVerdict> {
  const { cover, message, options } = verification;
  if (typeof cover === 'string') return believe(verification, secret);
  const signed = decodeHex(cover.sha256, sha256Bytes);
  if (signed === undefined) return refused('no-match');
  const digest = options.primitives.sha256(message.body);
  const compare = (made: Uint8Array) =>
    sameOctets(made, signed) ? believe(verification, secret) : refused('no-match');
  return digest instanceof Promise ? digest.then(compare) : compare(digest);
}

function believe<Key>({ rule, fields, options }: Verification<Key>, secret: number | null): RuleVerdict {
  const { timestamp, id } = fields;
  const { toleranceSeconds = rule.toleranceSeconds, nowMs } = options;
  const reason = timestamp === null ? undefined : refuseTime(timestamp, { toleranceSeconds, nowMs });
  return reason === undefined ? { ok: true, timestamp, id, secret } : refused(reason);
}

/**
 * Returns the fault of the signed time; undefined: none.
 * @throws TypeError for a negative or non-numeric tolerance, which would disable the check
 */
function refuseTime(timestamp: number, window: TimeWindow): 'stale' | 'ahead' | undefined {
  const { toleranceSeconds = toleranceSecondsDefault, nowMs = Date.now() } = window;
  if (!(toleranceSeconds >= 0) || !Number.isFinite(nowMs)) {
    throw new TypeError(
      'toleranceSeconds and nowMs must be numbers, and toleranceSeconds must not be negative',
    );
  }
  if (toleranceSeconds === 0) return undefined;
  const age = Math.floor(nowMs / 1000) - timestamp;
  if (age > toleranceSeconds) return 'stale';
  return -age > toleranceSeconds ? 'ahead' : undefined;
}

function verifyToken<Key>(
  { header, prefix = '' }: TokenRule,
  message: SignedMessage,
  keys: PreparedKeys<Key>,
): RuleVerdict {
  if (keys.kind !== 'token') throw new TypeError(otherRule);
  const value = placeReader(message)(header);
  const reason = refuseField(value);
  if (reason !== undefined) return refused(reason);
  if (!String(value).startsWith(prefix)) return refused('malformed');
  const token = octetsOf(String(value).slice(prefix.length));
  let secret: number | undefined;
  for (const [at, each] of keys.tokens.entries()) if (sameOctets(each, token)) secret ??= at;
  return secret === undefined ? refused('no-match') : { ok: true, timestamp: null, id: null, secret };
}

function isAmong(signatures: readonly Uint8Array[], mac: Uint8Array): boolean {
  for (const signature of signatures) if (sameOctets(signature, mac)) return true;
  return false;
}
