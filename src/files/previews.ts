/**
 * Previews of files: smaller pictures of an image, by the rules that a field declares (docs/decisions/0107). One is made when it is first asked
 * for, once for all who ask at that time, and kept in the place beside its file, under the file's prefix, with which it is removed.
 * A preview is named by its rule and not by the rule's name: another size or quality makes another one.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { ContentFile } from '../http/message.ts';
import { memoryBounds } from '../memory/bounds.ts';
import { OctetCache, octetsOfText } from '../memory/octet-cache.ts';
import { type PreviewRule, type WholePreviewRule, wholePreviewRule } from '../model/file.ts';
import type { Services } from '../store/capabilities.ts';
import { workerFile } from '../store/worker-file.ts';
import { FileMissing, type Place, previewPrefix } from './place.ts';
import { createPreviewMaker, PreviewRefused, type PreviewSettings } from './preview-maker.ts';

/** A complete file in the place. */
export type PreviewedFile = {
  readonly id: string;
  /** Of its octets in the place. */
  readonly key: string;
  /** Judged by the content. */
  readonly type: string;
  readonly bytes: number;
};

/** A preview as content that may be sent in ranges. */
export type Preview = {
  readonly type: string;
  readonly bytes: number;
  /** In hexadecimal digits: the entity tag. */
  readonly sha256: string;
  /** @throws FileMissing; StoreUnavailable */
  readonly read: ContentFile['read'];
};

export type Previews = {
  /**
   * Finds the preview of the file by the rule, or makes it.
   * @param party for whom it is made
   * @throws PreviewRefused; FileMissing; PlaceFull; StoreUnavailable
   */
  open(file: PreviewedFile, rule: PreviewRule, party: string): Promise<Preview>;
  close(): Promise<void>;
};

type Kept = { readonly key: string; readonly bytes: number };
type Known = Kept | { readonly refused: string; readonly until: number };

/** For so long a refusal holds without a look at the image: the time may have run out because the machine was busy. */
const refusedMs = 600_000;
/** Two processes that share a folder may make the same preview at one time. */
const suffixBytes = 8;

export function createPreviews(
  place: Place,
  { settings, random, clock }: Pick<Services, 'random' | 'clock'> & { readonly settings: PreviewSettings },
): Previews {
  const maker = createPreviewMaker(settings);
  const known = new OctetCache<Known>({
    octetsMax: memoryBounds.previewsKnown.octets,
    octetsOf: (value) => octetsOfText('key' in value ? value.key : value.refused),
  });
  const underWay = new Map<string, Promise<Kept>>();
  let cleared: Promise<void> | undefined;

  async function findOrMake(file: PreviewedFile, rule: WholePreviewRule, party: string): Promise<Kept> {
    const prefix = previewPrefix(file.id, tagOf(rule));
    for await (const found of place.list(prefix)) return found;
    cleared ??= clearLeftovers(place.incoming, clock());
    await cleared;
    const path = join(place.incoming, `${file.id}.${random(suffixBytes).toString('hex')}${leftoverEnd}`);
    const { type, bytes } = file;
    const open = () => place.read(file.key, 0, bytes);
    try {
      const made = await maker.make({ type, bytes, open }, rule, path, party);
      const key = `${prefix}${made.sha256}`;
      await place.keep(key, { path, bytes: made.bytes, sha256: Buffer.from(made.sha256, 'hex') });
      await removeIfAlone(place, key, file.key);
      return { key, bytes: made.bytes };
    } finally {
      // A folder has taken it over, a bucket has copied it.
      await rm(path, { force: true });
    }
  }

  async function find(file: PreviewedFile, rule: WholePreviewRule, party: string): Promise<Kept> {
    const name = `${file.id}.${tagOf(rule)}`;
    const before = known.get(name);
    if (before !== undefined && 'key' in before) return before;
    if (before !== undefined && before.until > clock()) throw new PreviewRefused(before.refused);
    const waiting = underWay.get(name);
    if (waiting !== undefined) return waiting;
    const work = findOrMake(file, rule, party).finally(() => underWay.delete(name));
    underWay.set(name, work);
    try {
      const kept = await work;
      known.set(name, kept);
      return kept;
    } catch (error) {
      if (error instanceof PreviewRefused)
        known.set(name, { refused: error.message, until: clock() + refusedMs });
      throw error;
    }
  }

  return {
    async open(file, declared, party) {
      const rule = wholePreviewRule(declared);
      const kept = await find(file, rule, party);
      // Removed by hand: the next request makes it again.
      const lose = (): void => known.delete(`${file.id}.${tagOf(rule)}`);
      return previewOf(place, kept, previewType(rule), lose);
    },
    close: () => maker.close(),
  };
}

/** @param onMissing called if the place has it no more */
function previewOf(place: Place, { key, bytes }: Kept, type: string, onMissing: () => void): Preview {
  return {
    type,
    bytes,
    sha256: key.slice(-64),
    async read(...extents) {
      try {
        return await place.read(key, ...extents);
      } catch (error) {
        if (error instanceof FileMissing) onMissing();
        throw error;
      }
    },
  };
}

/** A file that was removed meanwhile takes its previews with it, but for one that came after. @throws FileMissing */
async function removeIfAlone(place: Place, key: string, fileKey: string): Promise<void> {
  try {
    (await place.read(fileKey, 0, 0)).destroy();
  } catch (error) {
    if (error instanceof FileMissing) await place.remove(key);
    throw error;
  }
}

export function previewType(rule: PreviewRule): string {
  return `image/${wholePreviewRule(rule).format}`;
}

/** Changes if the same rule makes other pictures. */
const version = 1;
const tagDigits = 16;

function tagOf({ width, height, fit, format, quality }: WholePreviewRule): string {
  const text = JSON.stringify([version, width, height, fit, format, format === 'png' ? 0 : quality]);
  return createHash('sha256').update(text).digest('hex').slice(0, tagDigits);
}

const leftoverEnd = '.preview';
/** Longer than a preview may take, by any setting. */
const leftoverMs = 3_600_000;

/** Removes previews that a process left unfinished when it ended. */
async function clearLeftovers(folder: string, now: number): Promise<void> {
  for (const name of await readdir(folder).catch(() => [])) {
    if (!name.endsWith(leftoverEnd)) continue;
    const path = join(folder, name);
    const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: now }));
    if (mtimeMs + leftoverMs < now) await rm(path, { force: true }).catch(ignore);
  }
}

function ignore(): void {
  // It is removed at another start.
}

const checkMs = 30_000;
const errorLine = /^\w*Error: (.+)$/m;

/**
 * What is wrong with a declaration of previews: `sharp` is not installed, or does not run here. It is loaded in a process, as for previews.
 * @param fields that declare previews: `tickets.photo`
 */
export async function previewsMistake(fields: readonly string[]): Promise<string | undefined> {
  if (fields.length === 0) return undefined;
  const file = fileURLToPath(workerFile('./preview-process', import.meta.url));
  try {
    await promisify(execFile)(process.execPath, [file, 'check'], { env: {}, timeout: checkMs });
    return undefined;
  } catch (error) {
    return explainStart((error as { readonly stderr?: string }).stderr ?? '', fields);
  }
}

/** @param output what the process wrote before it ended */
export function explainStart(output: string, fields: readonly string[]): string {
  const remedy = `npm install sharp; or remove the previews of ${fields.join(', ')}`;
  if (output.includes('ERR_MODULE_NOT_FOUND'))
    return `previews need a package that is not installed: ${remedy}`;
  const reason = errorLine.exec(output)?.[1] ?? 'it does not start';
  return `previews need sharp, which cannot be loaded (${reason}): ${remedy}`;
}
