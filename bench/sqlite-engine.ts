/**
 * Comity and the floors over SQLite: a seeded file for each number of rows, everything of a server on its one processor.
 */
import { copyFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { comityEnvironment, type Engine, programOf, type Subject } from './engine.ts';
import { seedFloor } from './floor/store.ts';
import type { Pinning } from './pin.ts';
import type { ProcessorShare } from './processor-share.ts';
import { seed } from './seed-sqlite.ts';
import { type ServerProcess, startServer } from './server-process.ts';

const idleAfterMs = 3000;
const root = fileURLToPath(new URL('..', import.meta.url));

export function sqliteEngine(pinning: Pinning, folder: string): Engine {
  let empties = 0;
  let places = 0;

  function startOn(
    data: string,
    pinned: Pinning,
    { tree = root, share, workers = 1 }: { tree?: string; share?: ProcessorShare; workers?: number } = {},
  ): Promise<ServerProcess> {
    const environment = {
      ...comityEnvironment,
      COMITY_CONFIG: join(tree, 'bench', 'comity.config.ts'),
      COMITY_DATA: data,
      COMITY_PROCESSES: String(workers),
    };
    return startServer(pinned, [programOf(tree), 'serve'], environment, share?.wrap);
  }

  async function startIn(data: string, rows: number, pinned: Pinning, tree?: string): Promise<Subject> {
    mkdirSync(data, { recursive: true });
    if (rows > 0) seed(data, rows);
    const server = await startOn(data, pinned, tree === undefined ? {} : { tree });
    // Idle is what it is when nothing has happened for a while.
    if (rows > 0) await setTimeout(idleAfterMs);
    return { server, idleMemoryBytes: server.memoryBytes() };
  }

  const startAgain = () => startIn(join(folder, `ready-${empties}`), 0, { ...pinning, pinned: false });

  return {
    words: 'creates with `synchronous=FULL` on both sides',
    async prepareFloor(rows) {
      const own = join(folder, `floor-${rows}`);
      mkdirSync(own, { recursive: true });
      const seeded = join(own, 'floor.db');
      seedFloor(seeded, rows);
      return async (kind, copy = '') => {
        const file = kind === 'create' ? join(own, `floor-create${copy}.db`) : seeded;
        if (kind === 'create') copyFileSync(seeded, file);
        const server = await startServer(pinning, [join(root, 'bench', 'floor', `${kind}.ts`), file]);
        return { server, idleMemoryBytes: server.memoryBytes() };
      };
    },
    startComity: (rows, tree) =>
      startIn(join(folder, `${tree === undefined ? 'comity' : 'compared'}-${rows}`), rows, pinning, tree),
    startEmpty() {
      empties += 1;
      return startAgain();
    },
    startAgain,
    async startScaled(rows, shareOf) {
      const start = async (workers: number): Promise<Subject> => {
        const data = join(folder, `workers-${workers}`);
        mkdirSync(data, { recursive: true });
        seed(data, rows);
        const share = shareOf(workers);
        const server = await startOn(data, { ...pinning, pinned: false }, { share, workers });
        return { server, idleMemoryBytes: undefined };
      };
      return { words: 'two workers against one', one: await start(1), two: [await start(2)] };
    },
    newPlace() {
      places += 1;
      const own = join(folder, `place-${places}`);
      mkdirSync(own, { recursive: true });
      return { store: 'sqlite', folder: own };
    },
    close: async () => undefined,
  };
}
