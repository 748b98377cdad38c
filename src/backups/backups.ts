/**
 * Backups that administrators ask for: whole copies of the store in one folder, each a file that `comity restore` reads, with a folder beside
 * it if the store has files (files/backup-files.ts). The folder of backups is the truth: a file that its operator removes is no longer
 * listed. One copy at a time is made by a process; others wait for it.
 *
 * No caller chooses a name: Comity makes them of the time and an id, and knows only files with such names.
 */
import { mkdir, opendir, rm, stat, statfs } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { Type } from 'typebox';
import { backUpWithFiles, filesFolderOf, readSummary } from '../files/backup-files.ts';
import { isMissing, type Place, PlaceFull } from '../files/place.ts';
import type { Problem } from '../http/problem.ts';
import { type ActionLimits, actionOperation, actionResource, type Done, madeBy } from '../kernel/action.ts';
import { type Item, json, named, pageSchema, pathParameter } from '../kernel/documentation.ts';
import { operationSchema } from '../kernel/operations/operation-routes.ts';
import type { Ask, Made, Operation, Resource, Result, Standing } from '../kernel/resource.ts';
import { permission } from '../model/access.ts';
import type { Principal } from '../model/principal.ts';
import { serviceTag } from '../resources/program/document.ts';
import type { Services } from '../store/capabilities.ts';
import { type Change, type MaybePromise, type Store, StoreUnavailable } from '../store/store.ts';

type Backup = {
  readonly id: string;
  /** Name in the folder. */
  readonly file: string;
  readonly bytes: number;
  /** Files of documents, whose octets are beside it. */
  readonly files: number;
  readonly fileBytes: number;
  /** When the copy began: it holds everything that was committed before. */
  readonly createdAt: string;
};

/** The files that a backup includes. */
export type BackedUpFiles = {
  /** Undefined: no collection has files. */
  readonly place: Place | undefined;
  readonly placeName: string;
  /** Octets of files that a backup would take up in the folder. */
  readonly bytes: (folder: string) => MaybePromise<number>;
};

/** Size of the store, as far as it is known: about the size of a copy. */
export type StoreBytes = () => MaybePromise<number | undefined>;

type Backups = {
  readonly folder: string;
  /** True while a copy is made by this process, or waits. */
  isBusy(): boolean;
  /** The newest first. */
  list(): Promise<readonly Backup[]>;
  find(id: string): Promise<Backup | undefined>;
  /** Why no backup can be made now; undefined if nothing is known that prevents it. */
  obstacle(): Promise<Problem | undefined>;
  /** Makes one, after those that wait. @throws StoreUnavailable if the store is closed meanwhile */
  make(): Promise<Backup | { readonly refused: Problem }>;
  /** True if it was there. */
  remove(id: string): Promise<boolean>;
};

/** Left free for the store, which stops writing on a full disk. */
const spareBytes = 64 * 1024 * 1024;
/** Names looked at: the folder may have files of its operator. */
const entriesMax = 10_000;
/** An unfinished file of another process that was not written for so long was left by a kill. */
const abandonedMs = 3_600_000;

const nameOf = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z_(bak_[0-9a-z]{26})\.db(\.partial|\.files)?$/;

const separators = /[-:]/g;
const fullDisk = /\b(disk is full|no space left)\b/i;

type Found = {
  readonly id: string;
  readonly file: string;
  readonly at: string;
  /** `folder`: the octets of the files of a backup, which may be unfinished. */
  readonly kind: 'backup' | 'partial' | 'folder';
};

type Making = Services & { readonly storeBytes: StoreBytes; readonly files: BackedUpFiles };

export function createBackups(
  services: Services,
  place: string,
  storeBytes: StoreBytes,
  files: BackedUpFiles,
): Backups {
  const folder = resolve(place);
  const { backupsMax } = services.settings;
  const neededBytes = async () => ((await storeBytes()) ?? 0) + (await files.bytes(folder));
  const making = { ...services, files, storeBytes: neededBytes };
  let waiting = 0;
  let last: Promise<unknown> = Promise.resolve();
  return {
    folder,
    isBusy: () => waiting > 0,
    list: () => listFolder(folder),
    find: async (id) => (await listFolder(folder)).find((backup) => backup.id === id),
    obstacle: () => obstacleIn(folder, backupsMax, neededBytes),
    make() {
      waiting += 1;
      const begin = () => makeBackup(making, folder);
      const made = last.then(begin, begin).finally(() => {
        waiting -= 1;
      });
      last = made.catch(ignore);
      return made;
    },
    async remove(id) {
      const found = (await filesIn(folder)).find((each) => each.id === id && each.kind === 'backup');
      if (found === undefined) return false;
      await removeBackup(join(folder, found.file));
      return true;
    },
  };
}

async function listFolder(folder: string): Promise<readonly Backup[]> {
  const backups: Backup[] = [];
  for (const { id, file, at, kind } of await filesIn(folder)) {
    if (kind !== 'backup') continue;
    const path = join(folder, file);
    const found = await stat(path).catch(ignoreMissing);
    if (found?.isFile() !== true) continue;
    const { files = 0, bytes: fileBytes = 0 } = (await readSummary(path)) ?? {};
    backups.push({ id, file, bytes: found.size, files, fileBytes, createdAt: at });
  }
  return backups.sort((one, other) => (one.file < other.file ? 1 : -1));
}

/** The file goes first: octets without it are no backup, and are removed by the next one at the latest. */
async function removeBackup(path: string): Promise<void> {
  await rm(path, { force: true });
  await rm(filesFolderOf(path), { recursive: true, force: true });
}

/** The file system of a folder. @returns undefined if it reports no size */
export async function diskOf(
  folder: string,
): Promise<{ readonly bytes: number; readonly freeBytes: number } | undefined> {
  const { bavail, bsize, blocks } = await statfs(folder);
  return blocks === 0 ? undefined : { bytes: blocks * bsize, freeBytes: bavail * bsize };
}

/** Creates the folder as well. @throws StoreUnavailable */
async function obstacleIn(
  folder: string,
  backupsMax: number,
  storeBytes: StoreBytes,
): Promise<Problem | undefined> {
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const exhausted = await exhaustionOf(folder, backupsMax, 0);
    if (exhausted !== undefined) return exhausted;
    const neededBytes = ((await storeBytes()) ?? 0) + spareBytes;
    const freeBytes = (await diskOf(folder))?.freeBytes ?? 0;
    return freeBytes < neededBytes ? noSpace(folder, { freeBytes, neededBytes }) : undefined;
  } catch (error) {
    // The store does not tell its size now: 503, since the folder is not the reason.
    if (error instanceof StoreUnavailable) throw error;
    return failure(folder, error);
  }
}

/** @param own how many of those in the folder are not finished yet */
async function exhaustionOf(folder: string, backupsMax: number, own: number): Promise<Problem | undefined> {
  const count = (await filesIn(folder)).filter(({ kind }) => kind === 'backup').length - own;
  if (count < backupsMax) return undefined;
  const message = `the limit of ${backupsMax} backups in ${folder} is reached (COMITY_BACKUPS_MAX); delete one`;
  return { code: 'backups_exhausted', message, context: { backups: count } };
}

async function makeBackup(
  { store, clock, newId, observe, storeBytes, files, settings: { backupsMax } }: Making,
  folder: string,
): Promise<Backup | { readonly refused: Problem }> {
  // Only here, where no copy of this process is under way.
  await removeAbandoned(folder, store.shared ? clock() - abandonedMs : undefined).catch(ignore);
  const refused = await obstacleIn(folder, backupsMax, storeBytes);
  if (refused !== undefined) return { refused };
  const startedAt = performance.now();
  const second = new Date(clock()).toISOString().slice(0, 19);
  const id = `bak_${newId()}`;
  const file = `${second.replaceAll(separators, '')}Z_${id}.db`;
  const path = join(folder, file);
  try {
    const copied = await backUpWithFiles({
      copyStore: (whenCopied) => store.backup(path, ignore, whenCopied),
      ...{ backup: path, place: () => openedPlace(files), placeName: files.placeName },
    });
    const { size } = await stat(path);
    // Other workers and processes may have written to the folder meanwhile.
    const exhausted = await exhaustionOf(folder, backupsMax, 1);
    if (exhausted !== undefined) {
      await removeBackup(path);
      return { refused: exhausted };
    }
    observe({ kind: 'backup-made', file, bytes: size, durationMs: performance.now() - startedAt });
    const { files: count, bytes: fileBytes } = copied;
    return { id, file, bytes: size, files: count, fileBytes, createdAt: `${second}.000Z` };
  } catch (error) {
    await removeBackup(path).catch(ignore);
    // The store is being closed: the next process makes the backup.
    if (error instanceof StoreUnavailable && error.cause === undefined) throw error;
    observe({ kind: 'backup-failed', file, error });
    return { refused: failure(folder, error) };
  }
}

async function openedPlace({ place }: BackedUpFiles): Promise<Place> {
  if (place !== undefined) return place;
  throw new Error(
    'the store has files, and no collection of the configuration declares them; "comity backup" copies them all the same',
  );
}

/** Empty if the folder does not exist yet. */
async function filesIn(folder: string): Promise<readonly Found[]> {
  const found: Found[] = [];
  let left = entriesMax;
  try {
    for await (const { name } of await opendir(folder)) {
      left -= 1;
      if (left < 0) break;
      const [, year, month, day, hour, minute, second, id, end] = nameOf.exec(name) ?? [];
      if (id === undefined) continue;
      const at = `${year}-${month}-${day}T${hour}:${minute}:${second}.000Z`;
      const kind = end === undefined ? 'backup' : end === '.partial' ? 'partial' : 'folder';
      found.push({ id, file: name, at, kind });
    }
  } catch (error) {
    ignoreMissing(error);
  }
  return found;
}

/** @param before milliseconds since the epoch; undefined: no other process uses the folder, so every unfinished file was left by a kill */
async function removeAbandoned(folder: string, before: number | undefined): Promise<void> {
  const all = await filesIn(folder);
  const finished = new Set(all.filter(({ kind }) => kind === 'backup').map(({ id }) => id));
  for (const { id, file, kind } of all) {
    if (kind === 'backup' || (kind === 'folder' && finished.has(id))) continue;
    const path = join(folder, file);
    const found = before === undefined ? undefined : await stat(path).catch(ignoreMissing);
    if (before === undefined || (found !== undefined && found.mtimeMs < before))
      await rm(path, { recursive: true, force: true });
  }
}

function failure(folder: string, error: unknown): Problem {
  const cause = error instanceof StoreUnavailable ? (error.cause ?? error) : error;
  const reason = cause instanceof Error ? cause.message : String(cause);
  if (isFull(cause, reason)) return noSpace(folder, {});
  return { code: 'backup_failed', message: `the backup cannot be written to ${folder}: ${reason}` };
}

/** SQLite reports a full disk by its result code, which an error from a thread may lack. */
function isFull(cause: unknown, reason: string): boolean {
  if (cause instanceof PlaceFull) return true;
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
  return code === 'ENOSPC' || code === 'EDQUOT' || fullDisk.test(reason);
}

function noSpace(folder: string, context: NonNullable<Problem['context']>): Problem {
  const message = `the disk of ${folder} has no space for a copy of the store; free some, or set COMITY_BACKUP_FOLDER to a folder on another disk`;
  return { code: 'backup_space_missing', message, context };
}

function ignoreMissing(error: unknown): undefined {
  if (isMissing(error)) return undefined;
  throw error;
}

function ignore(): void {
  // Progress is not kept, and the failure of one backup does not concern the next.
}

/*
 * `/meta/backups` (§4.21.4): backups of the store in the folder of the process that answers, for administrators. A POST is always carried
 * out as an operation (202): the copy of a large store takes minutes.
 */

/** The audit entry of what a caller did. */
type AuditBackup = (ask: Ask, type: 'backup.created' | 'backup.deleted', subject: string) => Change;

type BackupStanding = Standing & { readonly backup: Backup | undefined };

const backupSchema: Item = named('Backup', {
  description: 'A copy of the whole store, which `comity restore` reads.',
  type: 'object',
  properties: {
    id: { type: 'string' },
    file: { type: 'string', description: 'Name of the file in the folder (`COMITY_BACKUP_FOLDER`).' },
    bytes: { type: 'integer' },
    files: { type: 'integer', description: 'Files of documents, in the folder of that name with `.files`.' },
    fileBytes: { type: 'integer' },
    createdAt: {
      type: 'string',
      format: 'date-time',
      description: 'Everything that was committed before is in the copy.',
    },
  },
  required: ['id', 'file', 'bytes', 'files', 'fileBytes', 'createdAt'],
});

const example: Backup = {
  id: 'bak_01k1jx7v2mh5s8b4c9d0e6f3ga',
  file: '20260801T093000Z_bak_01k1jx7v2mh5s8b4c9d0e6f3ga.db',
  bytes: 1_048_576,
  files: 12,
  fileBytes: 3_145_728,
  createdAt: '2026-08-01T09:30:00.000Z',
};

const mayRead = (principal: Principal) => permission('administrator', 'read', principal);
const mayCreate = (principal: Principal) => permission('administrator', 'create', principal);
const mayDelete = (principal: Principal) => permission('administrator', 'delete', principal);

export function backupResources(
  { store, settings }: Services,
  base: string,
  backups: Backups,
  audited: AuditBackup,
): readonly Resource[] {
  const path = `${base}/meta/backups`;
  const list = listResource(backups, settings, path);
  const member = memberResource(backups, settings, `${path}/{id}`);
  const own = { store, backups, audited, path };
  return [
    { ...list, operations: new Map([...list.operations, ['POST', creation(own, settings)]]) },
    { ...member, operations: new Map([...member.operations, ['DELETE', removal(own)]]) },
  ];
}

/** The backups of the routes, and what their changes are committed with. */
type BackupChanges = {
  readonly store: Pick<Store, 'commit'>;
  readonly backups: Backups;
  readonly audited: AuditBackup;
  readonly path: string;
};

function listResource(backups: Backups, limits: ActionLimits, path: string): Resource {
  return actionResource(
    {
      ...{ method: 'GET', path, tag: serviceTag, name: 'Backups' },
      id: 'listBackups',
      summary: 'List the backups',
      description:
        'Administrators only. Lists the files of the folder that the process which answers writes to, the newest first, all on one page.',
      output: {
        schema: pageSchema('Backups', 'The backups.', backupSchema),
        example: { items: [example], nextCursor: null },
      },
      codes: [],
      permission: mayRead,
      handler: async () => ({ content: { items: await backups.list(), nextCursor: null } }),
    },
    limits,
  );
}

function memberResource(backups: Backups, limits: ActionLimits, path: string): Resource {
  return actionResource<never, BackupStanding>(
    {
      ...{ method: 'GET', path, tag: serviceTag, name: 'Backup' },
      parameters: [pathParameter('id', 'Id of the backup.')],
      id: 'readBackup',
      summary: 'Read a backup',
      description: 'Administrators only. Tells of the file; the content stays on the server.',
      output: { schema: backupSchema, example },
      codes: [],
      permission: mayRead,
      mayBeMissing: true,
      standing: (ask) => standingOf(backups, ask),
      handler: (_ask, _input, { backup }) =>
        backup === undefined ? { refused: { code: 'not_found' } } : { content: backup },
    },
    limits,
  );
}

async function standingOf(backups: Backups, { captures: [id = ''] }: Ask): Promise<BackupStanding> {
  const backup = await backups.find(id);
  const exists = backup !== undefined;
  return { exists, visible: exists, permitted: exists, backup };
}

function creation(changes: BackupChanges, limits: ActionLimits): Operation {
  const { backups } = changes;
  const operation = actionOperation(
    {
      id: 'createBackup',
      summary: 'Make a backup of the store',
      description:
        'Administrators only. The copy is consistent, and is made while the store serves; Location names the operation, which leads to the backup. One is made at a time, and `COMITY_BACKUPS_MAX` are kept until they are deleted.',
      input: { name: 'BackupCreation', schema: Type.Object({}), example: {}, optional: true },
      codes: ['backup_running', 'backups_exhausted', 'backup_space_missing', 'backup_failed'],
      permission: mayCreate,
      // An accepted request has a companion that ends its operation.
      handler: async (ask) => (ask.companions.length === 0 ? await begin(backups) : await make(changes, ask)),
    },
    limits,
  );
  const { documentation } = operation;
  if (documentation === undefined) throw new Error('an action has documentation');
  return {
    ...operation,
    documentation: { ...documentation, queues: 'always', gives: { accepted: json(operationSchema) } },
  };
}

async function begin(backups: Backups): Promise<Done> {
  if (backups.isBusy()) return { refused: { code: 'backup_running' } };
  const refused = await backups.obstacle();
  return refused === undefined ? { postponed: true } : { refused };
}

/** The lease of the operation may be renewed while the unit that ends it is on its way. */
const commitsMax = 5;

async function make({ backups, store, audited, path }: BackupChanges, ask: Ask): Promise<Done> {
  const made = await backups.make();
  if ('refused' in made) return made;
  const done = { content: made, created: `${path}/${made.id}` };
  const result = madeBy(done);
  for (let left = commitsMax; left > 0; left -= 1) {
    const ends = ask.companions.map((companion) => companion(result));
    const changes = [...ends, audited(ask, 'backup.created', made.id)];
    const { outcome } = await store.commit({ changes, events: [] });
    if (outcome === 'committed') return done;
  }
  // Another process has taken the operation over, and makes a backup of its own.
  await backups.remove(made.id);
  return { refused: { code: 'backup_failed' } };
}

function removal({ backups, store, audited }: BackupChanges): Operation {
  const operation: Operation<BackupStanding> = {
    documentation: {
      id: 'deleteBackup',
      summary: 'Delete a backup',
      description: 'Administrators only. Removes the file.',
      mayBeMissing: true,
      gives: { deleted_representation: json(backupSchema, example) },
    },
    permission: mayDelete,
    standing: (ask) => standingOf(backups, ask),
    act: async (ask, { backup }): Promise<Result> => {
      if (backup === undefined || !(await backups.remove(backup.id)))
        return { refused: { code: 'not_found' } };
      const made: Made = {
        ...{ outcome: 'made', created: false, location: null, doc: JSON.stringify(backup) },
        ...{ modifiedAt: null, validated: false },
      };
      const companions = ask.companions.map((companion) => companion(made));
      const changes = [...companions, audited(ask, 'backup.deleted', backup.id)];
      await store.commit({ changes, events: [] });
      return { made, rev: 0 };
    },
  };
  return operation as Operation;
}
