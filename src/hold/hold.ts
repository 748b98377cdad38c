/**
 * The hold of a restored copy: nothing that was due when the backup was made leaves the program, neither deliveries to endpoints nor mails,
 * until an administrator releases it. A copy on another machine would otherwise send everything a second time, beside the store that it was
 * made of.
 *
 * A restore puts the row of the hold into the store with all others (cli/backup.ts), and nothing else creates one. So a program that finds
 * none when it starts is never held.
 */
import { Type } from 'typebox';
import { actionResource, type Done } from '../kernel/action.ts';
import { type Item, named, type Tag } from '../kernel/documentation.ts';
import type { Resource } from '../kernel/resource.ts';
import { permission } from '../model/access.ts';
import type { SetRow } from '../store/backup-file/file-format.ts';
import type { Services } from '../store/capabilities.ts';
import { createFollower } from '../store/follower.ts';
import { tryCommit } from '../store/lines.ts';
import { type Change, Overtaken, type Row, type Store } from '../store/store.ts';
import type { Lanes } from '../work/lanes.ts';

export const holdTable = 'work_hold';
/** The only row. */
const holdId = 'restored';

type Hold = {
  /** When the copy was restored, RFC 3339. */
  readonly since: string;
  /** Name of the file that was restored. */
  readonly from: string;
};

/** The row that a restore leaves. @param hold undefined: the restored store is not held, even if the backup was */
export function holdRow(hold: Hold | undefined): SetRow {
  const doc = hold === undefined ? undefined : JSON.stringify(hold);
  return { table: holdTable, id: holdId, doc, at: hold === undefined ? 0 : Date.parse(hold.since) };
}

function holdOf({ doc }: Row): Hold {
  return JSON.parse(doc) as Hold;
}

/** True in a restored copy that is not released yet. */
export async function isHeld(store: Pick<Store, 'read'>): Promise<boolean> {
  return (await store.read(holdTable, holdId)) !== undefined;
}

/** Ends the hold. */
function releaseChange({ rev }: Row): Change {
  return { table: holdTable, id: holdId, expect: { rev }, next: null };
}

/**
 * The lanes of a program whose store may be held: as long as it is, none of them is this process's. The process follows the hold, so that
 * all processes begin to send when one of them gets the order.
 */
export async function untilReleased(
  lanes: Lanes,
  { store, observe }: Pick<Services, 'store' | 'observe'>,
): Promise<Lanes> {
  const row = await store.read(holdTable, holdId);
  if (row === undefined) return lanes;
  observe({ kind: 'work-held', ...holdOf(row) });
  let held = true;
  const released = Promise.withResolvers<void>();
  const follower = createFollower(
    async () => {
      if (!held || (await isHeld(store))) return;
      held = false;
      void follower.close();
      observe({ kind: 'work-released' });
      released.resolve();
    },
    (error) =>
      observe({ kind: 'store-failed', what: 'reading whether deliveries and mails are held', error }),
  );
  follower.follow((listener) => store.onChange(holdTable, listener));
  return {
    owns: (queue) => !held && lanes.owns(queue),
    need: () => lanes.need(),
    hold: (queue) => lanes.hold(queue),
    release: (queue) => lanes.release(queue),
    onChange(listener) {
      let follows = true;
      void released.promise.then(() => {
        if (follows) listener();
      });
      const stop = lanes.onChange(listener);
      return () => {
        follows = false;
        stop();
      };
    },
    async close() {
      await follower.close();
      await lanes.close();
    },
  };
}

/* `/hold`: whether deliveries and mails of a restored copy are held, and their release, for administrators. */

export type ShownHold = {
  readonly held: boolean;
  readonly since: string | null;
  readonly from: string | null;
};

const tag: Tag = {
  name: 'hold',
  description: 'Deliveries and mails of a restored copy.',
  audience: 'operator',
};

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
        ...{ path, tag, method: 'GET', name: 'Hold' },
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
        ...{ path: `${path}/release`, tag },
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
