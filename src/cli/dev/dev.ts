/**
 * `comity dev`: serves the configuration in a process of its own, and starts the next one when a file that it imported has changed: modules
 * cannot be unloaded. The next process starts when the one before has ended, since the lock of a data folder belongs to one.
 *
 *   serving   a process runs, or has ended by itself: a mistake in the configuration leaves none until the next change
 *   changing  a file has changed: the process is told to stop, by a message, because Windows has no signals
 *   ending    a signal has come: the process is told to stop, and no other starts
 */
import { type ChildProcess, fork } from 'node:child_process';
import { existsSync, type FSWatcher, readFileSync, watch } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseEnv } from 'node:util';
import type { Environment, WrittenSettings } from '../../config/load-settings.ts';
import { variableOf } from '../../config/settings.ts';
import { ignoreError, ownEmitter } from '../../observe/own-emitter.ts';
import { workerFile } from '../../store/worker-file.ts';
import { CommandFailure, exitCodes } from '../failure.ts';
import type { Terminal } from '../terminal.ts';
import { type FromProcess, firstVariable } from './dev-messages.ts';

/** Editors write a file in several steps. */
const gatherMs = 30;

/** A process that does not stop within this time is ended. */
const stopMs = 3_000;

/** Requests under way delay a restart no longer than this. */
const drainMs = 1_000;

const environmentFile = '.env';

export async function dev(terminal: Terminal, options: WrittenSettings): Promise<number> {
  if (terminal.environment[firstVariable] !== undefined) {
    const { serveForDeveloper } = await import('./dev-process.ts');
    return serveForDeveloper(terminal);
  }
  const session = new Session(terminal, options);
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
  readonly #watchers = new Map<string, FSWatcher>();
  readonly #files = new Set<string>();
  #mode: 'serving' | 'changing' | 'ending' = 'serving';
  #child: ChildProcess | undefined;
  #url: string | undefined;
  #isFirst = true;
  #gathering: NodeJS.Timeout | undefined;
  #change = Promise.withResolvers<void>();

  constructor(terminal: Terminal, options: WrittenSettings) {
    this.#terminal = terminal;
    this.#options = options;
  }

  async run(): Promise<number> {
    const environment = this.#environment();
    this.#follow(resolve(environment.COMITY_CONFIG ?? 'comity.config.ts'));
    this.#follow(resolve(environmentFile));
    try {
      while (this.#mode !== 'ending') {
        this.#mode = 'serving';
        this.#change = Promise.withResolvers();
        const code = await this.#serve();
        if (this.#mode === 'serving') {
          this.#terminal.err(`comity dev: the program ended with ${code}; waiting for a change`);
          await this.#change.promise;
        }
      }
      return exitCodes.done;
    } finally {
      for (const watcher of this.#watchers.values()) watcher.close();
    }
  }

  end(): void {
    // A second signal does not wait.
    if (this.#mode === 'ending') this.#child?.kill('SIGKILL');
    this.#mode = 'ending';
    this.#change.resolve();
    this.#stop();
  }

  /** One process, from its start to its end. @returns its exit code, or the signal that ended it */
  #serve(): Promise<number | string> {
    const child = ownEmitter(
      fork(fileURLToPath(workerFile('../../main', import.meta.url)), ['dev'], {
        env: this.#environment(),
        stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      }),
      ignoreError,
    );
    this.#child = child;
    this.#isFirst = false;
    child.stdout?.on('data', (text: Uint8Array) => void this.#terminal.stdout.write(text));
    child.stderr?.on('data', (text: Uint8Array) => void this.#terminal.stderr.write(text));
    child.on('message', (message: FromProcess) => {
      if (message.kind === 'imported') this.#follow(message.file);
      else this.#url = message.url;
    });
    return new Promise((resolveEnd) => {
      child.once('close', (code, signal) => {
        this.#child = undefined;
        resolveEnd(code ?? signal ?? exitCodes.failed);
      });
    });
  }

  #stop(): void {
    const child = this.#child;
    if (child === undefined) return;
    if (child.connected) child.send('stop', () => undefined);
    const late = setTimeout(() => child.kill('SIGKILL'), stopMs);
    child.once('close', () => clearTimeout(late));
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
      this.#stop();
    }, gatherMs).unref();
  }

  #environment(): NodeJS.ProcessEnv {
    const given = { ...fileEnvironment(), ...this.#terminal.environment };
    const written = Object.entries(this.#options).map(([name, value]) => [variableOf(name), value]);
    const environment: NodeJS.ProcessEnv = {
      COMITY_DEVELOPMENT: 'on',
      COMITY_DRAIN_MS: String(drainMs),
      ...given,
      ...Object.fromEntries(written),
      COMITY_PROCESSES: '1',
      [firstVariable]: this.#isFirst ? 'yes' : 'no',
    };
    // A port that the system chose stays the same.
    if (environment.COMITY_PORT === '0' && this.#url !== undefined)
      environment.COMITY_PORT = new URL(this.#url).port;
    return environment;
  }
}

/** @throws CommandFailure if the file cannot be read */
function fileEnvironment(): Environment {
  if (!existsSync(environmentFile)) return {};
  try {
    return parseEnv(readFileSync(environmentFile, 'utf8')) as Environment;
  } catch (error) {
    throw new CommandFailure(`${environmentFile} cannot be read`, { cause: error });
  }
}
