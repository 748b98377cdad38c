/** Several processes of the program on one database, started, killed and started again like behind a supervisor. */
import type { Answer, RequestOptions } from '../../harness/exchange.ts';
import { type ServerProcess, spawnServer } from '../../harness/server-process.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';

export type Fleet = {
  /** Processes that run now; at least one unless all are being started again. */
  readonly running: readonly ServerProcess[];
  /** One of those that run, or of those the given one is not. @throws when none runs */
  pick(except?: ServerProcess): ServerProcess;
  /** SIGKILL or SIGTERM to one of them; resolves when it serves again. @returns the exit code that SIGTERM led to */
  restart(program: ServerProcess, how: 'kill' | 'stop'): Promise<number | null>;
  /** Ends of processes that nobody asked for. */
  readonly deaths: readonly string[];
  stop(): Promise<void>;
};

/** A supervisor tries again when a process does not start, as while the database is away. */
const startAttempts = 20;
const startPauseMs = 250;

export async function startFleet(
  databaseUrl: string,
  count: number,
  env: Readonly<Record<string, string>> = {},
  config?: string,
): Promise<Fleet> {
  const root = temporaryFolder();
  const options = {
    folder: root,
    env: { COMITY_DATABASE_URL: databaseUrl, ...env },
    ...(config === undefined ? {} : { config }),
  };
  const deaths: string[] = [];
  const asked = new Set<ServerProcess>();
  let running: readonly ServerProcess[] = [];

  async function startOne(): Promise<ServerProcess> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        const program = await spawnServer(options);
        program.process.once('exit', (code, signal) => {
          running = running.filter((other) => other !== program);
          if (!asked.has(program)) deaths.push(`${code ?? signal}: ${program.stderr().slice(-2000)}`);
        });
        running = [...running, program];
        return program;
      } catch (error) {
        if (attempt === startAttempts) throw error;
        await new Promise((resolve) => setTimeout(resolve, startPauseMs));
      }
    }
  }

  async function end(program: ServerProcess, how: 'kill' | 'stop'): Promise<number | null> {
    asked.add(program);
    // A load balancer is told of a stop before it happens, and of a kill by its connections alone.
    if (how === 'stop') running = running.filter((other) => other !== program);
    return how === 'stop' ? program.stop() : program.kill().then(() => null);
  }

  async function stop(): Promise<void> {
    await Promise.all(running.map((program) => end(program, 'stop')));
  }

  try {
    await Promise.all(Array.from({ length: count }, startOne));
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    get running() {
      return running;
    },
    deaths,
    pick(except) {
      const others = running.filter((program) => program !== except);
      const found = others[Math.floor(Math.random() * others.length)] ?? running[0];
      if (found === undefined) throw new Error('no process runs');
      return found;
    },
    async restart(program, how) {
      const code = await end(program, how);
      await startOne();
      return code;
    },
    stop,
  };
}

/** The same request to each of them at once. */
export function sendToAll(
  programs: readonly Pick<ServerProcess, 'send'>[],
  method: string,
  path: string,
  options?: RequestOptions,
): Promise<readonly Answer[]> {
  return Promise.all(programs.map((program) => program.send(method, path, options)));
}
