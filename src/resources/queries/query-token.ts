/**
 * Tokens of queries, which their URIs end with: a MAC of the query, and for a short query the query itself, encrypted, so that nothing has
 * to be stored (decision 0066). A token cannot be guessed, reveals nothing about the query (RFC 10008 §4), and is the same for the same query.
 *
 * The encryption is that of RFC 5297 (SIV) with SHA-256 in the place of CMAC: the MAC of the text is the initial counter of AES in counter
 * mode, so two texts never share a key stream, and is compared after decryption. Node offers no SIV mode.
 */
import { createCipheriv, createDecipheriv, createSecretKey, hash, timingSafeEqual } from 'node:crypto';

export type TokenizedQuery = {
  readonly collection: string;
  readonly mediaType: string;
  readonly text: string;
};

export type QueryTokens = {
  of(query: TokenizedQuery): string;
  /** Returns true if the token contains its query. */
  isSealed(token: string): boolean;
  /** The query in the token; undefined if `of` did not write it. */
  open(token: string): TokenizedQuery | undefined;
};

/** 132 bits in base64url; the first 128 are the initial counter. */
const macCharacters = 22;

/** The URI occurs four times in a response with two links: 1.8 KB at this length, within the 4 KiB that proxies grant all fields. */
const sealedBytesMax = 256;

/** A URI may be this part of the longest target, which leaves room for a cursor. */
const targetPart = 1 / 16;

const cipher = 'aes-256-ctr';

/** @param mac of `macCharacters` characters, keyed with the store's own secret */
export function createQueryTokens(mac: (text: string) => string, targetBytesMax: number): QueryTokens {
  const bytesMax = Math.min(sealedBytesMax, targetBytesMax * targetPart);
  const key = createSecretKey(hash('sha256', `${mac('query key 1')}${mac('query key 2')}`, 'buffer'));
  const macOf = ({ collection, mediaType, text }: TokenizedQuery) =>
    mac(`query\n${collection}\n${mediaType}\n${text}`);
  const isSealed = (token: string) => token.length > macCharacters;
  return {
    of(query) {
      const { collection, mediaType, text } = query;
      const seal = macOf(query);
      if (text.length > bytesMax || Buffer.byteLength(text) > bytesMax) return seal;
      const sealing = createCipheriv(cipher, key, counterOf(seal));
      return seal + sealing.update(`${collection}\n${mediaType}\n${text}`, 'utf8').toString('base64url');
    },
    isSealed,
    open(token) {
      const seal = token.slice(0, macCharacters);
      const counter = counterOf(seal);
      if (!isSealed(token) || counter.length !== counterBytes) return undefined;
      const octets = Buffer.from(token.slice(macCharacters), 'base64url');
      const opened = createDecipheriv(cipher, key, counter).update(octets).toString();
      const [collection = '', mediaType = '', ...lines] = opened.split('\n');
      const query = { collection, mediaType, text: lines.join('\n') };
      return isSame(macOf(query), seal) ? query : undefined;
    },
  };
}

const counterBytes = 16;

function counterOf(seal: string): Buffer {
  return Buffer.from(seal, 'base64url');
}

function isSame(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}
