/** A PostgreSQL server of a test's own, for tests that stop it, kill it or set it up otherwise: they live below test/full/postgres. */
import { spawnKeeper } from './keeper-process.ts';

export type OwnCluster = {
  /** Stays the same over stops and starts. */
  readonly url: string;
  stop(mode?: 'fast' | 'immediate'): Promise<void>;
  /** SIGKILL. Resolves when the server is gone; `start` recovers. */
  kill(): Promise<void>;
  start(): Promise<void>;
  /** Stops the server's processes where they are: connections stand, and nothing answers. `thaw` lets them go on. */
  freeze(): Promise<void>;
  thaw(): Promise<void>;
  /** Copies the data of the stopped server; `load` puts the copy in its place again. */
  save(): Promise<void>;
  load(): Promise<void>;
  dispose(): Promise<void>;
};

/** A server that keeps what it acknowledged (fsync on). @param settings of PostgreSQL, by its names */
export async function ownCluster(settings: Readonly<Record<string, string>> = {}): Promise<OwnCluster> {
  const keeper = spawnKeeper(settings);
  const url = await keeper.start();
  return {
    url,
    stop: (mode = 'fast') => keeper.stop(mode),
    kill: () => keeper.kill(),
    start: async () => void (await keeper.start()),
    freeze: () => keeper.freeze(),
    thaw: () => keeper.thaw(),
    save: () => keeper.save(),
    load: () => keeper.load(),
    dispose: () => keeper.dispose(),
  };
}
