/** Starts keeper.ts and speaks to it. The cluster goes when this process does, however it ends, or with `dispose`. */
import { spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { KeeperAnswer } from './keeper.ts';

export type Keeper = {
  readonly pid: number;
  /** Starts the server and waits until it takes connections. @returns the URL of its database `postgres` */
  start(): Promise<string>;
  /** `fast` ends sessions in order; `immediate` drops them and leaves the next start to recover. */
  stop(mode: 'fast' | 'immediate'): Promise<void>;
  /** SIGKILL: nothing is written down or said goodbye to. */
  kill(): Promise<void>;
  /** Stops the server's processes where they are: connections stand, and nothing answers. `thaw` lets them go on. */
  freeze(): Promise<void>;
  thaw(): Promise<void>;
  /** Copies the data of a stopped server; `load` puts the copy in its place. */
  save(): Promise<void>;
  load(): Promise<void>;
  /** Stops the server and removes its folder. */
  dispose(): Promise<void>;
};

/** @param settings of the server, by PostgreSQL's names */
export function spawnKeeper(settings: Readonly<Record<string, string>>): Keeper {
  const path = fileURLToPath(new URL('./keeper.ts', import.meta.url));
  // Detached: a signal to the group of the tests must not reach the one that tidies up after them.
  const child = spawn(process.execPath, [path, JSON.stringify(settings)], {
    detached: true,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const waiting: ((answer: KeeperAnswer) => void)[] = [];
  let gone = false;
  const exited = new Promise<void>((resolve) => {
    child.once('exit', () => {
      gone = true;
      for (const settle of waiting.splice(0)) settle({ error: 'The keeper of PostgreSQL has ended' });
      resolve();
    });
  });
  child.stdin.on('error', () => undefined);
  createInterface({ input: child.stdout }).on('line', (line) => {
    waiting.shift()?.(JSON.parse(line) as KeeperAnswer);
    if (waiting.length === 0) letGo();
  });
  const pipes = [child.stdin, child.stdout] as unknown as readonly Socket[];
  /** While nothing is asked, the keeper must not keep the asker from ending. */
  const letGo = () => {
    child.unref();
    for (const pipe of pipes) pipe.unref();
  };
  const hold = () => {
    child.ref();
    for (const pipe of pipes) pipe.ref();
  };
  const ask = async (command: string): Promise<string> => {
    if (gone) throw new Error('The keeper of PostgreSQL has ended');
    hold();
    const answer = await new Promise<KeeperAnswer>((resolve) => {
      waiting.push(resolve);
      child.stdin.write(`${command}\n`);
    });
    if ('error' in answer) throw new Error(`${command}: ${answer.error}`);
    return answer.url;
  };
  letGo();
  return {
    pid: child.pid ?? 0,
    start: () => ask('start'),
    stop: async (mode) => void (await ask(`stop ${mode}`)),
    kill: async () => void (await ask('kill')),
    freeze: async () => void (await ask('freeze')),
    thaw: async () => void (await ask('thaw')),
    save: async () => void (await ask('save')),
    load: async () => void (await ask('load')),
    async dispose() {
      hold();
      child.stdin.end();
      await exited;
    },
  };
}
