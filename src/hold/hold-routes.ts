/** `/hold`: whether deliveries and mails of a restored copy are held, and their release, for administrators. */
import { Type } from 'typebox';
import { actionResource, type Done } from '../kernel/action.ts';
import { type Item, named, type Tag } from '../kernel/documentation.ts';
import type { Resource } from '../kernel/resource.ts';
import { permission } from '../model/access.ts';
import type { Services } from '../store/capabilities.ts';
import { tryCommit } from '../store/lines.ts';
import { Overtaken, type Row, type Store } from '../store/store.ts';
import { holdId, holdOf, holdTable, releaseChange } from './hold.ts';

export type ShownHold = {
  readonly held: boolean;
  readonly since: string | null;
  readonly from: string | null;
};

const tag: Tag = { name: 'hold', description: 'Deliveries and mails of a restored copy.' };

const holdSchema: Item = named('Hold', {
  description: 'Whether deliveries to endpoints and mails are held since the store was restored.',
  type: 'object',
  properties: {
    held: { type: 'boolean' },
    since: { type: ['string', 'null'], format: 'date-time', description: 'When the store was restored.' },
    from: { type: ['string', 'null'], description: 'Name of the backup.' },
  },
  required: ['held', 'since', 'from'],
});

const example: ShownHold = { held: true, since: '2026-08-01T09:30:00.000Z', from: 'daily.db' };

export function holdResources({ store, settings }: Services, base: string): readonly Resource[] {
  const path = `${base}/hold`;
  return [
    actionResource(
      {
        ...{ path, tag, method: 'GET', name: 'Hold', noun: 'the hold of a restored copy' },
        id: 'readHold',
        summary: 'Read whether deliveries and mails are held',
        output: { schema: holdSchema, example },
        codes: [],
        permission: (principal) => permission('administrator', 'read', principal),
        handler: async () => ({ content: shownHold(await store.read(holdTable, holdId)) }),
      },
      settings,
    ),
    actionResource(
      {
        ...{ path: `${path}/release`, tag, noun: 'the release of deliveries and mails' },
        id: 'releaseHold',
        summary: 'Release deliveries and mails',
        description:
          'All processes of the store begin to send what is due. Without a hold it changes nothing.',
        input: { name: 'HoldRelease', schema: Type.Object({}), example: {}, optional: true },
        output: { schema: holdSchema, example: { held: false, since: null, from: null } },
        codes: [],
        permission: (principal) => permission('administrator', 'update', principal),
        changes: () => ({ table: holdTable, id: holdId }),
        handler: () => release(store),
      },
      settings,
    ),
  ];
}

async function release(store: Store): Promise<Done> {
  const row = await store.read(holdTable, holdId);
  if (row !== undefined) {
    const commit = await tryCommit(store, { changes: [releaseChange(row)], events: [] });
    if (commit instanceof Overtaken) return commit;
  }
  return { content: shownHold(undefined) };
}

function shownHold(row: Row | undefined): ShownHold {
  return row === undefined ? { held: false, since: null, from: null } : { held: true, ...holdOf(row) };
}
