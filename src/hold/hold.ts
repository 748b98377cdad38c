/**
 * The hold of a restored copy: nothing that was due when the backup was made leaves the program, neither deliveries to endpoints nor mails,
 * until an administrator releases it. A copy on another machine would otherwise send everything a second time, beside the store that it was
 * made of.
 *
 * A restore puts the row of the hold into the store with all others (cli/restore.ts), and nothing else creates one. So a program that finds
 * none when it starts is never held.
 */
import type { SetRow } from '../store/backup-file/origin.ts';
import type { Services } from '../store/capabilities.ts';
import type { Change, Row } from '../store/store.ts';
import type { Lanes } from '../work/lanes.ts';

export const holdTable = 'work_hold';
/** The only row. */
export const holdId = 'restored';

export type Hold = {
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

export function holdOf({ doc }: Row): Hold {
  return JSON.parse(doc) as Hold;
}

/** Ends the hold. */
export function releaseChange({ rev }: Row): Change {
  return { table: holdTable, id: holdId, expect: { rev }, next: null };
}

/** Waits before a read of the hold that failed is repeated. */
const repeatMs = 1000;

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
  let again: NodeJS.Timeout | undefined;
  const look = async (): Promise<void> => {
    clearTimeout(again);
    try {
      if (!held || (await store.read(holdTable, holdId)) !== undefined) return;
      held = false;
      unfollow();
      observe({ kind: 'work-released' });
      released.resolve();
    } catch (error) {
      observe({ kind: 'store-failed', what: 'reading whether deliveries and mails are held', error });
      again = setTimeout(() => void look(), repeatMs).unref();
    }
  };
  const unfollow = store.onChange(holdTable, () => void look());
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
      clearTimeout(again);
      unfollow();
      await lanes.close();
    },
  };
}
