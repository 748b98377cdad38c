/**
 * Copies all files of one place to another, for a move. Each file is compared with the digest in its key while it is
 * copied. Files that are there already are passed over, so a copy that was interrupted goes on with the rest when it is made again.
 */

import { formatDigest } from '../http/syntax/digest.ts';
import { copyOctets, inParallel, type StoredFile } from './copy-files.ts';
import { type Place, partsOfKey } from './place.ts';

export type PlaceCopy = {
  readonly copied: number;
  readonly bytes: number;
  /** Files that were there already. */
  readonly known: number;
  /** Keys whose octets were lost, or are others than those that were kept: the first of them, and how many. */
  readonly damaged: readonly string[];
  readonly damagedCount: number;
};

export type CopyOptions = {
  /** Called after each file that was copied. */
  readonly onCopied?: (key: string, bytes: number) => void;
  readonly signal?: AbortSignal;
};

type Counts = { -readonly [N in keyof PlaceCopy]: N extends 'damaged' ? string[] : PlaceCopy[N] };

/** Keys are gone through by their first two characters, so that the memory for what is known is a thousandth of all. */
const digits = '0123456789abcdefghijklmnopqrstuvwxyz';
const damagedShownMax = 100;

/** @throws PlaceFull; StoreUnavailable; the reason of the signal. What was copied until then stays. */
export async function copyPlace(from: Place, to: Place, options: CopyOptions = {}): Promise<PlaceCopy> {
  const counts: Counts = { copied: 0, bytes: 0, known: 0, damaged: [], damagedCount: 0 };
  await inParallel(shardNames(), (shard) => copyShard(`${shard}/`, { from, to, counts, options }));
  return counts;
}

function* shardNames(): Generator<string> {
  for (const first of digits) for (const second of digits) yield first + second;
}

type Copying = {
  readonly from: Place;
  readonly to: Place;
  readonly counts: Counts;
  readonly options: CopyOptions;
};

async function copyShard(prefix: string, { from, to, counts, options }: Copying): Promise<void> {
  const known = new Map<string, number>();
  let isListed = false;
  for await (const { key, bytes } of from.list(prefix)) {
    options.signal?.throwIfAborted();
    if (!isListed) for await (const found of to.list(prefix)) known.set(found.key, found.bytes);
    isListed = true;
    if (known.get(key) === bytes) {
      counts.known += 1;
    } else if ((await copyOctets(fileOfKey(key, bytes), { from, to })) === 'copied') {
      counts.copied += 1;
      counts.bytes += bytes;
      options.onCopied?.(key, bytes);
    } else {
      counts.damagedCount += 1;
      if (counts.damaged.length < damagedShownMax) counts.damaged.push(key);
    }
  }
}

/** The file that a key names. */
export function fileOfKey(key: string, bytes: number): StoredFile {
  const { name, digest } = partsOfKey(key);
  const [id = ''] = name.split('.', 1);
  return { id, bytes, digest: formatDigest('sha-256', Buffer.from(digest, 'hex')) };
}
