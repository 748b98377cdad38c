/**
 * Tokens of queries, which their URIs end with: a MAC of the query, and for a short query the query itself, encrypted, so that nothing has
 * to be stored (decision 0066). A token cannot be guessed, reveals nothing about the query (RFC 10008 §4), and is the same for the same query.
 *
 * The encryption is that of RFC 5297 (SIV) with SHA-256 in the place of CMAC: the MAC of the text is the initial counter of AES in counter
 * mode, so two texts never share a key stream, and is compared after decryption. Node offers no SIV mode.
 */
import { createCipheriv, createSecretKey, hash, type KeyObject, timingSafeEqual } from 'node:crypto';

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

/** @param mac of `macCharacters` characters, keyed with the store's own secret */
export function createQueryTokens(mac: (text: string) => string, targetBytesMax: number): QueryTokens {
  const bytesMax = Math.min(sealedBytesMax, targetBytesMax * targetPart);
  const applyKeyStream = createKeyStream(
    createSecretKey(hash('sha256', `${mac('query key 1')}${mac('query key 2')}`, 'buffer')),
  );
  const macOf = ({ collection, mediaType, text }: TokenizedQuery) =>
    mac(`query\n${collection}\n${mediaType}\n${text}`);
  const isSealed = (token: string) => token.length > macCharacters;
  return {
    of(query) {
      const { collection, mediaType, text } = query;
      const seal = macOf(query);
      if (text.length > bytesMax || Buffer.byteLength(text) > bytesMax) return seal;
      const octets = Buffer.from(`${collection}\n${mediaType}\n${text}`);
      applyKeyStream(counterOf(seal), octets);
      return seal + octets.toString('base64url');
    },
    isSealed,
    open(token) {
      const seal = token.slice(0, macCharacters);
      const counter = counterOf(seal);
      if (!isSealed(token) || counter.length !== counterBytes) return undefined;
      const octets = Buffer.from(token.slice(macCharacters), 'base64url');
      applyKeyStream(counter, octets);
      const [collection = '', mediaType = '', ...lines] = octets.toString().split('\n');
      const query = { collection, mediaType, text: lines.join('\n') };
      return isSame(macOf(query), seal) ? query : undefined;
    },
  };
}

const counterBytes = 16;

/**
 * AES-256 in counter mode, which encrypts and decrypts alike, in place. The stream is that of 'aes-256-ctr', from one cipher of single blocks
 * for all texts: with a cipher for each, a QUERY took 10 to 20 us more, 1 of them here and the rest because the collector must release it.
 */
function createKeyStream(key: KeyObject): (initialCounter: Buffer, octets: Buffer) => void {
  const blocks = createCipheriv('aes-256-ecb', key, null).setAutoPadding(false);
  return (initialCounter, octets) => {
    const stream = blocks.update(countersFrom(initialCounter, octets.length));
    for (let at = 0; at < octets.length; at += 1) octets[at] = (octets[at] ?? 0) ^ (stream[at] ?? 0);
  };
}

/** Consecutive counters, big-endian, for so many octets of the stream. */
function countersFrom(initial: Buffer, bytes: number): Buffer {
  const counters = Buffer.allocUnsafe(Math.ceil(bytes / counterBytes) * counterBytes);
  const counter = Buffer.from(initial);
  for (let block = 0; block < counters.length; block += counterBytes) {
    counters.set(counter, block);
    increment(counter);
  }
  return counters;
}

function increment(counter: Buffer): void {
  for (let at = counter.length - 1; at >= 0; at -= 1) {
    const octet = ((counter[at] ?? 0) + 1) & 0xff;
    counter[at] = octet;
    if (octet !== 0) return;
  }
}

function counterOf(seal: string): Buffer {
  return Buffer.from(seal, 'base64url');
}

function isSame(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}
