/**
 * Receives the octets of a file: its row first, then the octets as they arrive, the judgement of what they are, and their place. Nothing is
 * left of a file that is refused or cut off.
 */
import { join } from 'node:path';
import type { Problem } from '../http/problem.ts';
import { type DigestAlgorithm, formatDigest } from '../http/syntax/digest.ts';
import type { FileRule } from '../model/file.ts';
import type { Principal } from '../model/principal.ts';
import type { Services } from '../store/capabilities.ts';
import {
  arrivingRecord,
  type FileRecord,
  type FileTarget,
  fileChange,
  filesTable,
  newFileId,
  recordOf,
} from './file-rows.ts';
import { type Arrived, IncomingFile, removeIncoming } from './incoming.ts';
import { type FileContent, type JudgeType, typeShown } from './media-type.ts';
import { type Place, PlaceFull, placeKey, placePrefix } from './place.ts';
import type { Quotas } from './quotas.ts';

export type Receiving = Pick<Services, 'store' | 'clock' | 'newId'> & {
  readonly place: Place;
  readonly quotas: Quotas;
  readonly judgeType: JudgeType;
};

/** What a request says of a file before its octets. */
export type Announced = {
  readonly principal: Principal;
  readonly target: FileTarget;
  readonly rule: FileRule;
  readonly name: string;
  /** Content-Type as the client states it; undefined: none. */
  readonly type: string | undefined;
  /** Undefined: not known. */
  readonly bytes: number | undefined;
  /** The digests that the request states. */
  readonly digests?: ReadonlyMap<DigestAlgorithm, Uint8Array>;
};

export type Received = { readonly id: string; readonly record: FileRecord } | { readonly problem: Problem };

/**
 * Receives all octets and keeps them in the place; the row is `arriving` until a document takes the file.
 * @throws StoreUnavailable, and what the content throws when the client breaks off
 */
export async function receiveFile(
  receiving: Receiving,
  announced: Announced,
  content: AsyncIterable<Uint8Array>,
): Promise<Received> {
  const { place, store, clock, newId } = receiving;
  const { rule, principal, target, bytes: stated = 0 } = announced;
  if (stated > rule.bytesMax) return { problem: tooLong(rule) };
  const used = await receiving.quotas.excess({ principal, collection: target.collection, bytes: stated });
  if (used !== undefined) return { problem: used };
  const id = newFileId(newId);
  const begun = arrivingRecord(principal, { ...target, bytes: stated });
  const { outcome } = await store.commit({
    changes: [fileChange(id, undefined, begun, clock())],
    events: [],
  });
  if (outcome !== 'committed') throw new Error('the id of a new file is taken');
  try {
    const arrived = await takeIn(place, id, announced, content);
    if ('problem' in arrived) return await abandoned(receiving, id, arrived);
    const { head, bytes } = arrived;
    const admitted = await admit(receiving, {
      ...{ principal, collection: target.collection, rule, named: target.field },
      ...{ head, bytes, counted: stated, stated: announced.type, name: announced.name },
    });
    if ('problem' in admitted) return await abandoned(receiving, id, admitted);
    await place.keep(placeKey(id, arrived.sha256), arrived);
    // A folder has taken it over, a bucket has copied it.
    await removeIncoming(arrived.path);
    const digest = formatDigest('sha-256', arrived.sha256);
    return { id, record: { ...begun, name: announced.name, type: admitted.type, bytes, digest } };
  } catch (error) {
    const problem: Problem = { code: 'file_space_missing' };
    const left = await abandoned(receiving, id, { problem });
    if (error instanceof PlaceFull) return left;
    throw error;
  }
}

type Arriving = Omit<FileContent, 'types'> & {
  readonly principal: Principal;
  readonly collection: string;
  readonly rule: FileRule | undefined;
  /** The file, for sentences. */
  readonly named: string;
  /** Octets of the file that its row counts already. */
  readonly counted: number;
};

/** Judges octets that have arrived, before they are kept. @returns the type as documents show it, or why they are refused */
export async function admit(
  { quotas, judgeType }: Pick<Receiving, 'quotas' | 'judgeType'>,
  { principal, collection, rule, named, counted, ...content }: Arriving,
): Promise<{ readonly type: string } | { readonly problem: Problem }> {
  const judged = await judgeType({ ...content, types: rule?.types });
  if (!judged.ok)
    return { problem: { code: 'media_type_unsupported', message: `${named} ${judged.message}` } };
  const over = await quotas.excess({ principal, collection, bytes: content.bytes, counted });
  return over === undefined ? { type: typeShown(judged) } : { problem: over };
}

function tooLong({ bytesMax }: FileRule): Problem {
  return { code: 'content_too_large', message: `a file must be at most ${bytesMax} bytes long here` };
}

async function takeIn(
  place: Place,
  id: string,
  { rule, digests = new Map() }: Announced,
  content: AsyncIterable<Uint8Array>,
): Promise<Arrived | { readonly problem: Problem }> {
  const incoming = await IncomingFile.create(place.incoming, id, digests.keys());
  try {
    for await (const chunk of content) {
      if (incoming.bytes + chunk.length > rule.bytesMax) {
        await incoming.drop();
        return { problem: tooLong(rule) };
      }
      await incoming.write(chunk);
    }
    const arrived = await incoming.end();
    for (const [algorithm, octets] of digests)
      if (!arrived.digests.get(algorithm)?.equals(octets)) {
        const message = `the content that arrived has ${arrived.bytes} octets and another ${algorithm} digest`;
        return { problem: { code: 'digest_mismatch', message } };
      }
    return arrived;
  } catch (error) {
    await incoming.drop();
    throw error;
  }
}

/** Removes what there is of a file that no document has; a failure leaves that to the removal of files. */
export async function abandon({ store, clock, place }: Receiving, id: string): Promise<void> {
  try {
    const row = await store.read(filesTable, id);
    await removeOctets(place, id, row === undefined ? undefined : recordOf(row));
    if (row !== undefined)
      await store.commit({ changes: [fileChange(id, row, undefined, clock())], events: [] });
  } catch {
    // Its row is past its lifetime one day.
  }
}

async function abandoned<T>(receiving: Receiving, id: string, outcome: T): Promise<T> {
  await abandon(receiving, id);
  return outcome;
}

/** Removes octets of the file wherever they are. */
export async function removeOctets(
  place: Place,
  id: string,
  record: Pick<FileRecord, 'upload'> | undefined,
): Promise<void> {
  await removeIncoming(join(place.incoming, id));
  const file = record?.upload?.file;
  if (typeof file === 'string') await removeIncoming(join(place.incoming, file));
  for await (const { key } of place.list(placePrefix(id))) await place.remove(key);
}
