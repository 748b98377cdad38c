/**
 * The end of sessions, as changes for the caller's unit. Each names the revision that it was read at: where the session was refreshed
 * or seen meanwhile the unit is superseded and the caller asks again, so a session that is moving does not slip through.
 */
import type { Change, Store } from '../../store/store.ts';
import { sessionsTable } from '../tables.ts';
import type { SessionRow } from './session-row.ts';
import type { Sessions } from './sessions.ts';
import { sessionsOfUser } from './sessions-of-user.ts';

/** Rows read at a time. An account has `sessionsPerAccountMax` sessions at most. */
const pageRowsMax = 100;

/** What removes the session; nothing where it is gone. */
export async function endSession(store: Store, id: string): Promise<readonly Change[]> {
  const row = await store.read(sessionsTable, id);
  return row === undefined ? [] : [{ table: sessionsTable, id, expect: { rev: row.rev }, next: null }];
}

export function endSessionsOfUser(store: Store): Sessions['endOfUser'] {
  return async (user, except) => {
    const changes: Change[] = [];
    const plan = sessionsOfUser(store, user, 'asc', pageRowsMax);
    let page = await plan.page({ from: 'start' });
    for (;;) {
      const ids = page.docs.map((doc) => (JSON.parse(doc) as SessionRow).id).filter((id) => id !== except);
      const ends = await Promise.all(ids.map((id) => endSession(store, id)));
      changes.push(...ends.flat());
      if (!page.more || page.last === null) return changes;
      page = await plan.page({ from: 'after', key: page.last });
    }
  };
}
