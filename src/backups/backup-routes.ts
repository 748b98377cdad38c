/**
 * `/meta/backups` (§4.21.4): backups of the store in the folder of the process that answers, for administrators. A POST is always carried
 * out as an operation (202): the copy of a large store takes minutes.
 */
import { Type } from 'typebox';
import { type ActionLimits, actionOperation, actionResource, type Done, madeBy } from '../kernel/action.ts';
import { type Item, json, named, pageSchema, pathParameter } from '../kernel/documentation.ts';
import { operationSchema } from '../kernel/operations/operation-routes.ts';
import type { Ask, Made, Operation, Resource, Result, Standing } from '../kernel/resource.ts';
import { permission } from '../model/access.ts';
import type { Principal } from '../model/principal.ts';
import { serviceTag } from '../resources/program/document.ts';
import type { Services } from '../store/capabilities.ts';
import type { Change, Store } from '../store/store.ts';
import type { Backup, Backups } from './backups.ts';

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
    createdAt: {
      type: 'string',
      format: 'date-time',
      description: 'Everything that was committed before is in the copy.',
    },
  },
  required: ['id', 'file', 'bytes', 'createdAt'],
});

const example: Backup = {
  id: 'bak_01k1jx7v2mh5s8b4c9d0e6f3ga',
  file: '20260801T093000Z_bak_01k1jx7v2mh5s8b4c9d0e6f3ga.db',
  bytes: 1_048_576,
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
      ...{ method: 'GET', path, tag: serviceTag, name: 'Backups', noun: 'the backups' },
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
      ...{ method: 'GET', path, tag: serviceTag, name: 'Backup', noun: 'a backup' },
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
