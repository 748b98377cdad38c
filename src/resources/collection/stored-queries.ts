/**
 * Stored queries (§4.9.3; RFC 10008 §2.3): the text of a QUERY under a token, so that GET repeats it. A short query is
 * part of its token, and nothing is stored; a repeated QUERY has the same token and stores nothing either. The token
 * grants no access: access rules apply to each caller that uses it.
 *
 * Stored queries cost disk, so the octets that each owner, and all owners together, store within the lifetime of a
 * query are bounded. At the bound a QUERY is answered without Location, which RFC 10008 allows; a query whose Location
 * was sent is never dropped. `tally` counts the octets in windows, as for rate limits: if a crash of the database
 * server loses a counter, the owner can store up to its bound once more.
 */
import { createCipheriv, createSecretKey, hash, type KeyObject, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import { deflateRaw, inflateRaw } from 'node:zlib';
import type { Settings } from '../../config/settings.ts';
import { memoryBounds } from '../../memory/bounds.ts';
import { OctetCache } from '../../memory/octet-cache.ts';
import { always, byId } from '../../model/filter.ts';
import { rowBatches } from '../../store/in-batches.ts';
import { keptRow, type MaybePromise, type Store, StoreUnavailable, type Tally } from '../../store/store.ts';

export const queriesTable = 'stored_queries';

export type StoredQuery = TokenizedQuery & { readonly token: string };

export type StoredQueries = {
  tokenOf(query: TokenizedQuery): string;
  /**
   * Makes the token usable for at least half of its lifetime from now. Returns false if it is not: the query is too
   * long, a bound is reached, or the store takes no writes.
   * @param owner for which it counts: the principal, or the address of an anonymous caller
   * @throws StoreUnavailable if the store cannot be read
   */
  keep(query: StoredQuery, owner: string, now: number): MaybePromise<boolean>;
  find(token: string): Promise<StoredQuery | undefined>;
};

type QueryStore = Pick<Store, 'shared' | 'read' | 'commit' | 'plan' | 'tally' | 'onLost'>;
type StoredQueryLimits = Pick<
  Settings,
  | 'storedQuerySeconds'
  | 'storedQueryBytesMax'
  | 'storedQueriesPerOwnerBytesMax'
  | 'storedQueriesBytesMax'
  | 'targetBytesMax'
>;

/** The document of a row, whose id is the token. A long text is compressed. */
type Document = {
  readonly collection: string;
  readonly mediaType: string;
  readonly text?: string;
  /** `text`, deflated, in Base64. */
  readonly deflated?: string;
};

/** Compression does not shorten shorter texts. */
const deflatedFrom = 1024;

const deflate = promisify(deflateRaw);
const inflate = promisify(inflateRaw);

export function createStoredQueries(
  store: QueryStore,
  mac: (text: string) => string,
  limits: StoredQueryLimits,
): StoredQueries {
  const { storedQueryBytesMax } = limits;
  const tokens = createQueryTokens(mac, limits.targetBytesMax);
  const renewAfterMs = (limits.storedQuerySeconds * 1000) / 2;
  const storedAt = new OctetCache<number>({
    octetsMax: memoryBounds.storedTokens.octets,
    octetsOf: () => 16,
  });
  // A server that takes over without the last commits has no row of theirs.
  store.onLost(() => storedAt.clear());
  const quota = createQuota(store, limits);

  function remember(token: string, at: number): true {
    storedAt.set(token, at);
    return true;
  }

  async function write(query: StoredQuery, owner: string, now: number): Promise<boolean> {
    const { token } = query;
    const row = await store.read(queriesTable, token);
    if (row !== undefined && row.updatedAt + renewAfterMs >= now) return remember(token, row.updatedAt);
    const doc = JSON.stringify(await documentOf(query));
    const taken = await quota.take(mac(`owner\n${owner}`), doc.length, now);
    if (taken === undefined) return false;
    const next = keptRow(doc, taken.owner, row?.createdAt ?? now, now);
    const expect = row === undefined ? ({ absent: true } as const) : { rev: row.rev };
    try {
      const change = { table: queriesTable, id: token, expect, next };
      const { outcome } = await store.commit({ changes: [change], events: [] });
      // Superseded: another request stored the same query at the same moment.
      if (outcome !== 'committed') await taken.giveBack();
      return remember(token, now);
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      await taken.giveBack().catch(() => {
        // The octets stay counted until their window ends.
      });
      return false;
    }
  }

  return {
    tokenOf: tokens.of,
    keep(query, owner, now) {
      if (Buffer.byteLength(query.text) > storedQueryBytesMax) return false;
      if (tokens.isSealed(query.token)) return true;
      const at = storedAt.get(query.token);
      if (at !== undefined && now - at < renewAfterMs) return true;
      return write(query, owner, now);
    },
    async find(token) {
      if (tokens.isSealed(token)) {
        const query = tokens.open(token);
        return query === undefined ? undefined : { ...query, token };
      }
      const row = await store.read(queriesTable, token);
      if (row === undefined) return undefined;
      const { collection, mediaType, text, deflated = '' } = JSON.parse(row.doc) as Document;
      return { token, collection, mediaType, text: text ?? String(await inflate(fromBase64(deflated))) };
    },
  };
}

async function documentOf({ collection, mediaType, text }: StoredQuery): Promise<Document> {
  if (text.length < deflatedFrom) return { collection, mediaType, text };
  return { collection, mediaType, deflated: (await deflate(text)).toString('base64') };
}

function fromBase64(text: string): Buffer {
  return Buffer.from(text, 'base64');
}

/** Windows within a lifetime. */
const steps = 4;

/** Octets of a row besides its document: the other columns and two indexes. */
const rowOctets = 256;

/** Rows read at a time to count the stored queries at the start. */
const rowsPerRead = 32;

type Taken = {
  readonly owner: string;
  giveBack(): Promise<void>;
};

type Quota = {
  /**
   * Counts the octets for the owner and for all; undefined, with nothing counted, if either bound would be exceeded.
   */
  take(owner: string, octets: number, now: number): Promise<Taken | undefined>;
};

/**
 * Counts octets in windows of a quarter of the lifetime: the current window and the four before it cover at least all
 * queries that have not expired.
 */
function createQuota(
  store: QueryStore,
  { storedQuerySeconds, storedQueriesPerOwnerBytesMax, storedQueriesBytesMax }: StoredQueryLimits,
): Quota {
  const stepMs = Math.ceil((storedQuerySeconds * 1000) / steps);
  let counted: Promise<void> | undefined;

  function tallies(owner: string, step: number, add: number): readonly Tally[] {
    const expiresAt = (step + steps + 1) * stepMs;
    return ['', ` ${owner}`].flatMap((whose) =>
      Array.from({ length: steps + 1 }, (_, age) => ({
        key: `stored-queries${whose} ${step - age}`,
        add: age === 0 ? add : 0,
        expiresAt,
      })),
    );
  }

  /** Starts the counters with the stored queries: counters of an unshared store end with the process. */
  async function countStored(): Promise<void> {
    const plan = store.plan({ table: queriesTable, filter: always, sort: byId, limit: rowsPerRead });
    for await (const rows of rowBatches(plan, rowsPerRead)) {
      for (const { owner, doc, updatedAt } of rows) {
        await store.tally(tallies(owner ?? '', Math.floor(updatedAt / stepMs), doc.length + rowOctets));
      }
    }
  }

  return {
    async take(owner, octets, now) {
      if (!store.shared) {
        counted ??= countStored().catch((error) => {
          counted = undefined;
          throw error;
        });
        await counted;
      }
      const step = Math.floor(now / stepMs);
      const add = octets + rowOctets;
      const totals = await store.tally(tallies(owner, step, add));
      const giveBack = async (): Promise<void> => {
        await store.tally(tallies(owner, step, -add));
      };
      const sum = (from: number) =>
        totals.slice(from, from + steps + 1).reduce((one, other) => one + other, 0);
      if (sum(0) <= storedQueriesBytesMax && sum(steps + 1) <= storedQueriesPerOwnerBytesMax) {
        return { owner, giveBack };
      }
      await giveBack();
      return undefined;
    },
  };
}

// Tokens of queries, which their URIs end with: a MAC of the query, and for a short query the query itself, encrypted, so that nothing has
// to be stored (decision 0066). A token cannot be guessed, reveals nothing about the query (RFC 10008 §4), and is the same for the same query.
//
// The encryption is that of RFC 5297 (SIV) with SHA-256 in the place of CMAC: the MAC of the text is the initial counter of AES in counter
// mode, so two texts never share a key stream, and is compared after decryption. Node offers no SIV mode.

type TokenizedQuery = {
  readonly collection: string;
  readonly mediaType: string;
  readonly text: string;
};

type QueryTokens = {
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
