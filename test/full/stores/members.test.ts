/** Embedded SQLite as workers use it: what one store over the folder commits, another one reads. */
import type { Store } from '../../../src/store/store.ts';
import { backupFiles } from '../../contract/backup-files.ts';
import type { Engine } from '../../contract/engine.ts';
import { contractSuite } from '../../contract/suite.ts';
import { openMembers } from '../../store/open-members.ts';

const membersEngine: Engine = async (tables) => {
  const { folder, remove, ...backups } = backupFiles(tables);
  let members = openMembers({ tables, count: 2, folder });
  let store = readingFromTheOther(members.stores);
  return {
    ...backups,
    get store() {
      return store;
    },
    async reopen() {
      await members.close();
      members = openMembers({ tables, count: 2, folder });
      store = readingFromTheOther(members.stores);
      return store;
    },
    async dispose() {
      await members.close();
      remove();
    },
  };
};

function readingFromTheOther([writing, reading]: readonly Store[]): Store {
  if (writing === undefined || reading === undefined) throw new Error('two stores are needed');
  const { read, plan, count, version, tail, head, onAppend, onChange } = reading;
  const close = async (): Promise<void> => {
    await Promise.all([writing.close(), reading.close()]);
  };
  return { ...writing, read, plan, count, version, tail, head, onAppend, onChange, close };
}

contractSuite('two stores over one folder', membersEngine);
