/**
 * The running server: the whole program with its own listener on a free port of the loopback address, in the process of the test. What
 * `comity serve` adds to it (signals, the exit code, the command line) is the subject of server-process.ts.
 */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { after } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { readConfiguration } from '../../src/cli/read-configuration.ts';
import { welcomeText } from '../../src/cli/serve.ts';
import { serveOnWorkers } from '../../src/cli/workers/serve-on-workers.ts';
import type { ComposeOptions } from '../../src/compose.ts';
import type { Settings } from '../../src/config/settings.ts';
import { createLog } from '../../src/observe/log.ts';
import { createMetrics } from '../../src/observe/metrics.ts';
import { fanOut } from '../../src/observe/observation.ts';
import { compose, type Running } from '../../src/running.ts';
import type { EngineName } from './engine-names.ts';
import {
  type Answer,
  adminKey,
  forgetServer,
  type RequestOptions,
  send,
  traceExchanges,
} from './exchange.ts';
import type { TestDatabase } from './postgres-database.ts';
import { databaseOfProgram } from './program-database.ts';
import { temporaryFolder } from './temporary-folder.ts';
import { patienceMs } from './until.ts';

export const repositoryRoot: string = fileURLToPath(new URL('../..', import.meta.url));
export const shopConfig: string = join(repositoryRoot, 'examples/shop/comity.config.ts');

export type StartOptions = {
  readonly env?: Readonly<Record<string, string>>;
  /** Data folder; a new one, removed by `stop`, unless given. */
  readonly folder?: string;
  readonly config?: string;
  /** PostgreSQL: it has a database of its own, as with COMITY_TEST_STORE=postgres. */
  readonly engine?: EngineName;
  /** Fixed bounds (src/config/settings.ts) at values whose edge a test can reach. */
  readonly bounds?: Partial<Settings>;
};

export type RunningServer = {
  readonly url: string;
  readonly port: number;
  readonly folder: string;
  /** The welcome, which shows a key that was made at this start. */
  readonly stdout: () => string;
  /** Warnings, and the log, a JSON object a line. */
  readonly stderr: () => string;
  send(method: string, path: string, options?: RequestOptions): Promise<Answer>;
  /** The items of a list, which must be answered 200. */
  // biome-ignore lint/suspicious/noExplicitAny: what a test expects of them, it says itself.
  list(path: string, options?: RequestOptions): Promise<any[]>;
  /** The lines of the log about the request with this answer. */
  logOf(answer: Answer): string;
  /** Drains and closes; again, it only waits for that. */
  stop(): Promise<unknown>;
};

/** Starts a server by the settings of `env`, which are those of the environment. */
export async function startServer(options: StartOptions = {}): Promise<RunningServer> {
  const place = await placeOf(options);
  let stderr = '';
  const environment = { COMITY_DEVELOPMENT: 'on', ...environmentOf(options, place) };
  const { warnings, ...reading } = await readConfiguration(environment, {});
  for (const warning of warnings) stderr += `comity: warning: ${warning}\n`;
  const { configuration } = reading;
  const settings = { ...reading.settings, contentWorkTimeoutMs: patienceMs, ...options.bounds };
  const metrics = createMetrics();
  const destination = {
    write(line: string): void {
      stderr += line;
    },
  };
  const observe = fanOut(createLog({ level: settings.logLevel, destination }), metrics.observe);
  const running = await begin({ ...reading, settings, observe, metrics }, environment);
  const { url, tlsUrl, adminKey: madeKey, madeSecrets: senderSecrets } = running;
  const welcome = { url, tlsUrl, data: place.folder, adminKey: madeKey, senderSecrets, configuration };
  const port = Number(new URL(url).port);
  if (options.env?.COMITY_DEVELOPMENT === undefined) traceExchanges(port);
  const stop = async (): Promise<void> => {
    await running.stop('the end of its test');
    forgetServer(port);
    await place.remove();
  };
  let stopped: Promise<void> | undefined;
  return {
    url,
    port,
    folder: place.folder,
    stdout: () => welcomeText(welcome),
    stderr: () => stderr,
    send: (method, path, requestOptions) => send(port, method, path, requestOptions),
    list: (path, requestOptions) => listAt(port, path, requestOptions),
    logOf: (answer) => linesWith(stderr, String(answer.json().requestId)).join('\n'),
    stop() {
      stopped ??= stop();
      return stopped;
    },
  };
}

// biome-ignore lint/suspicious/noExplicitAny: what a test expects of them, it says itself.
export async function listAt(port: number, path: string, options: RequestOptions = {}): Promise<any[]> {
  return (await send(port, 'GET', path, { ...options, expect: 200 })).json().items;
}

/** Lines of a text, such as a log, that contain another text. */
export function linesWith(text: string, part: string): readonly string[] {
  return text.split('\n').filter((line) => line.includes(part));
}

/** With COMITY_TEST_PROCESSES=3 every server has three workers, whose log goes to standard error: so all of test/wire can be run on them. */
const workers = Number(process.env.COMITY_TEST_PROCESSES ?? 1);

async function begin(
  options: ComposeOptions & { readonly module: string },
  environment: Readonly<Record<string, string>>,
): Promise<Pick<Running, 'url' | 'tlsUrl' | 'adminKey' | 'madeSecrets' | 'stop'>> {
  if (workers === 1) return compose(options);
  const { observe, ...reading } = options;
  return serveOnWorkers({ count: workers, environment, written: {}, reading, observe });
}

/** A server for all tests of a file, which stops after them. */
export async function serverOfFile(options: StartOptions = {}): Promise<RunningServer> {
  const program = await startServer(options);
  after(() => program.stop());
  return program;
}

/** Where a server keeps its data, and how that is removed when it was made for this server. */
export type Place = {
  readonly folder: string;
  /** The variable that names its database; none where the store is embedded. */
  readonly database: { readonly COMITY_DATABASE_URL?: string };
  remove(): Promise<void>;
};

/**
 * With COMITY_TEST_STORE=postgres every server that names no database has one of its own, which stays with its folder:
 * so all of test/wire can be run on either store.
 */
const databases = new Map<string, TestDatabase>();

export async function placeOf({ folder: given, env, config, engine }: StartOptions): Promise<Place> {
  const folder = given ?? temporaryFolder();
  const isOnPostgres = engine === 'PostgreSQL' || process.env.COMITY_TEST_STORE === 'postgres';
  if (isOnPostgres && env?.COMITY_DATABASE_URL === undefined && !databases.has(folder)) {
    databases.set(folder, await databaseOfProgram(config ?? shopConfig));
  }
  const database = databases.get(folder);
  return {
    folder,
    database: database === undefined ? {} : { COMITY_DATABASE_URL: database.url },
    async remove() {
      if (given !== undefined) return;
      await rm(folder, { recursive: true, force: true });
      await database?.dispose();
    },
  };
}

/** With COMITY_TEST_CONTENT=threads all content is parsed and checked on threads, however short: answers must be the same. */
const onThreads: Readonly<Record<string, string>> =
  process.env.COMITY_TEST_CONTENT === 'threads' ? { COMITY_CONTENT_INLINE_BYTES_MAX: '0' } : {};

/** The settings of a server under test, with nothing of the tester's own environment. */
export function environmentOf(
  { config, env }: StartOptions,
  { folder, database }: Place,
): Readonly<Record<string, string>> {
  return {
    COMITY_CONFIG: config ?? shopConfig,
    COMITY_PORT: '0',
    COMITY_DATA: folder,
    COMITY_ADMIN_KEY: adminKey,
    // A thousandth of the work: what hashing costs is a matter of its own tests.
    COMITY_PASSWORD_MEMORY_KIBIBYTES: '64',
    COMITY_PASSWORD_PASSES: '1',
    // Where the machine is busy, a thread begins and a hook ends later than the defaults allow.
    COMITY_SCAN_TIMEOUT_MS: String(patienceMs),
    COMITY_HOOK_TIMEOUT_MS: String(patienceMs),
    ...database,
    // Where the database is shared, the place of files has to be said.
    ...(database.COMITY_DATABASE_URL === undefined
      ? {}
      : { COMITY_FILES_URL: pathToFileURL(join(folder, 'files')).href }),
    ...onThreads,
    ...env,
  };
}
