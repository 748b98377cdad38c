/**
 * `comity dev`: serves the configuration in a process of its own, and starts the next one when a file that it imported has changed: modules
 * cannot be unloaded. The next process reads the configuration while the one before ends its requests, and opens the data after that one has
 * ended, since the lock of a data folder belongs to one.
 *
 *   serving   a process runs, or has ended by itself: a mistake in the configuration leaves none until the next change
 *   changing  a file has changed: the process gets the message to stop, because Windows has no signals
 *   ending    a signal has come: the processes stop, and no other starts
 */
import { type ChildProcess, fork } from 'node:child_process';
import { existsSync, type FSWatcher, watch } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { WrittenSettings } from '../../config/load-settings.ts';
import { variableOf } from '../../config/settings.ts';
import { ignoreError, ownEmitter } from '../../observe/own-emitter.ts';
import { workerFile } from '../../store/worker-file.ts';
import { environmentFile, readEnvironmentFile } from '../environment-file.ts';
import { exitCodes } from '../failure.ts';
import type { Terminal } from '../terminal.ts';
import { type FromProcess, firstVariable, type ToProcess } from './dev-messages.ts';

/** Editors write a file in several steps. */
const gatherMs = 30;

/** Requests under way delay a restart no longer than this, unless COMITY_DRAIN_MS says so. */
const drainMs = 300;

/** A process that has not stopped within this time after the requests is ended: its event loop is blocked. */
const stopMs = 500;

/** If the configuration takes longer to load, a message says so. */
const loadMs = 2_000;

/** @param options with the file of variables */
export async function dev(
  terminal: Terminal,
  { env, ...options }: WrittenSettings & { readonly env?: string },
): Promise<number> {
  if (terminal.environment[firstVariable] !== undefined) {
    const { serveForDeveloper } = await import('./dev-process.ts');
    return serveForDeveloper(terminal);
  }
  const session = new Session(terminal, options, env);
  const onSignal = (): void => session.end();
  process.on('SIGTERM', onSignal).on('SIGINT', onSignal);
  try {
    return await session.run();
  } finally {
    process.off('SIGTERM', onSignal).off('SIGINT', onSignal);
  }
}

class Session {
  readonly #terminal: Terminal;
  readonly #options: WrittenSettings;
  /** The file of variables. */
  readonly #file: string | undefined;
  readonly #watchers = new Map<string, FSWatcher>();
  readonly #files = new Set<string>();
  /** The one that serves or starts, and those before it that are stopping. */
  readonly #processes = new Set<ServingProcess>();
  #mode: 'serving' | 'changing' | 'ending' = 'serving';
  #url: string | undefined;
  #gathering: NodeJS.Timeout | undefined;
  #change = Promise.withResolvers<void>();

  constructor(terminal: Terminal, options: WrittenSettings, file: string | undefined) {
    this.#terminal = terminal;
    this.#options = options;
    this.#file = file;
  }

  async run(): Promise<number> {
    const environment = this.#environment();
    this.#follow(resolve(environment.COMITY_CONFIG ?? 'comity.config.ts'));
    this.#follow(resolve(this.#file ?? environmentFile));
    try {
      while (this.#mode !== 'ending') {
        this.#mode = 'serving';
        this.#change = Promise.withResolvers();
        const before = [...this.#processes].map(({ ended }) => ended);
        const current = this.#start();
        void Promise.all(before).then(() => current.send('open'));
        const code = await Promise.race([current.ended, this.#change.promise]);
        if (code !== undefined && this.#mode === 'serving') {
          this.#terminal.err(`comity dev: the program ended with ${code}; waiting for a change`);
          await this.#change.promise;
        }
        current.stop();
      }
      await Promise.all([...this.#processes].map(({ ended }) => ended));
      return exitCodes.done;
    } finally {
      for (const watcher of this.#watchers.values()) watcher.close();
    }
  }

  end(): void {
    // A second signal does not wait.
    if (this.#mode === 'ending') for (const each of this.#processes) each.kill();
    this.#mode = 'ending';
    this.#change.resolve();
  }

  #start(): ServingProcess {
    const started: ServingProcess = new ServingProcess(this.#terminal, this.#environment(), {
      onImported: (file) => this.#follow(file),
      onStarted: (url) => {
        this.#url = url;
      },
      onEnded: () => void this.#processes.delete(started),
    });
    this.#processes.add(started);
    return started;
  }

  /** Folders are watched, since many editors replace a file. */
  #follow(file: string): void {
    this.#files.add(file);
    const folder = dirname(file);
    if (this.#watchers.has(folder) || !existsSync(folder)) return;
    const watcher = ownEmitter(watch(folder), ignoreError);
    watcher.on('change', (_kind, name) => {
      if (name === null || this.#files.has(resolve(folder, String(name)))) this.#changed(String(name));
    });
    this.#watchers.set(folder, watcher);
  }

  #changed(name: string): void {
    clearTimeout(this.#gathering);
    this.#gathering = setTimeout(() => {
      if (this.#mode !== 'serving') return;
      this.#mode = 'changing';
      this.#terminal.err(`comity dev: ${basename(name)} has changed`);
      this.#change.resolve();
    }, gatherMs).unref();
  }

  #environment(): NodeJS.ProcessEnv {
    const given = { ...readEnvironmentFile(this.#file), ...this.#terminal.environment };
    const written = Object.entries(this.#options).map(([name, value]) => [variableOf(name), value]);
    const environment: NodeJS.ProcessEnv = {
      COMITY_DEVELOPMENT: 'on',
      COMITY_DRAIN_MS: String(drainMs),
      ...given,
      ...Object.fromEntries(written),
      // Nothing routes to it.
      COMITY_DRAIN_DELAY_SECONDS: '0',
      COMITY_PROCESSES: '1',
      [firstVariable]: this.#url === undefined ? 'yes' : 'no',
    };
    // A port that the system chose stays the same.
    if (environment.COMITY_PORT === '0' && this.#url !== undefined)
      environment.COMITY_PORT = new URL(this.#url).port;
    return environment;
  }
}

type Following = {
  readonly onImported: (file: string) => void;
  readonly onStarted: (url: string) => void;
  readonly onEnded: () => void;
};

/**
 * A process that serves.
 *
 *   loading     it imports the configuration: it is ended without being asked, since it may never come to read a message
 *   configured  it may open the data, and is asked to stop
 */
class ServingProcess {
  /** Its exit code, or the signal that ended it. */
  readonly ended: Promise<number | string>;
  readonly #child: ChildProcess;
  readonly #boundMs: number;
  #mode: 'loading' | 'configured' = 'loading';

  constructor(terminal: Terminal, environment: NodeJS.ProcessEnv, following: Following) {
    this.#boundMs = Number(environment.COMITY_DRAIN_MS) + stopMs;
    const child = ownEmitter(
      fork(fileURLToPath(workerFile('../../main', import.meta.url)), ['dev'], {
        env: environment,
        stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      }),
      ignoreError,
    );
    this.#child = child;
    child.stdout?.on('data', (text: Uint8Array) => void terminal.stdout.write(text));
    child.stderr?.on('data', (text: Uint8Array) => void terminal.stderr.write(text));
    let slow: NodeJS.Timeout | undefined;
    child.on('message', (message: FromProcess) => {
      if (message.kind === 'imported') {
        slow ??= setTimeout(() => terminal.err(slowSentence), loadMs);
        following.onImported(message.file);
      } else if (message.kind === 'configured') {
        clearTimeout(slow);
        this.#mode = 'configured';
      } else following.onStarted(message.url);
    });
    this.ended = new Promise((resolveEnd) => {
      child.once('close', (code, signal) => {
        clearTimeout(slow);
        following.onEnded();
        resolveEnd(code ?? signal ?? exitCodes.failed);
      });
    });
  }

  send(message: ToProcess): void {
    if (this.#child.connected) this.#child.send(message, () => undefined);
  }

  stop(): void {
    if (this.#mode === 'loading') {
      this.kill();
      return;
    }
    this.send('stop');
    const late = setTimeout(() => this.kill(), this.#boundMs);
    void this.ended.then(() => clearTimeout(late));
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }
}

const slowSentence =
  `comity dev: the configuration has not finished loading after ${loadMs / 1000} s: it, or a file that it imports, may await something that ` +
  'never happens; a change starts it again';
