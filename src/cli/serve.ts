/**
 * `comity serve`: starts the program, prints the ready line, and stops on a signal or an uncaught error.
 *
 * Starting -> serving -> draining -> ended. The first signal begins the drain, after the delay that is set for it; during the start, the
 * start is finished first. A second signal ends the process at once. The program bounds its drain itself; `lateMs` after that bound this
 * file gives up, so that a fault in the drain cannot keep the process alive.
 *
 * An uncaught error drains as a signal does and exits 70; while starting it exits at once (decision 0037).
 */
import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import type { Configuration } from '../config/configuration.ts';
import type { WrittenSettings } from '../config/load-settings.ts';
import type { Settings } from '../config/settings.ts';
import { permission } from '../model/access.ts';
import type { Collection } from '../model/collection.ts';
import { anonymous } from '../model/principal.ts';
import { createLog } from '../observe/log.ts';
import { createMetrics } from '../observe/metrics.ts';
import { fanOut, type Observation } from '../observe/observation.ts';
import { compose, type Running } from '../running.ts';
import { addressOf, describe } from '../store/postgres/connection/address.ts';
import type { MadeSecret } from '../webhooks/receiving/sender-secrets.ts';
import { CommandFailure, exitCodes } from './failure.ts';
import { type Reading, readConfiguration, tellWarnings } from './read-configuration.ts';
import {
  exposeCollector,
  giveBackMemorySoon,
  type Heard,
  hearUncaught,
  type Uncaught,
} from './serving-process.ts';
import type { Terminal } from './terminal.ts';
import { serveOnWorkers } from './workers/serve-on-workers.ts';

const lateMs = 5000;

/** npm repeats a signal that the terminal has sent to the whole process group: within this time both count as one. */
const echoMs = 500;

/** What `comity dev` changes (dev/dev-process.ts). */
export type ServeForDeveloper = {
  /** Asks the program to stop, besides signals. */
  readonly stop: Promise<string>;
  /** Takes the facts for which it has a form of its own; true: the log need not have them. */
  readonly show: (observation: Observation) => boolean;
  /** Waits until the data may be opened. */
  readonly onConfigured: () => Promise<void>;
  readonly onStarted: (url: string) => void;
  /** The first start in a session prints more. */
  readonly isFirst: boolean;
};

/** Resolves with the exit code once the program has stopped. */
export async function serve(
  terminal: Terminal,
  options: WrittenSettings,
  developer?: ServeForDeveloper,
): Promise<number> {
  const signal = hearSignals(terminal.environment.npm_lifecycle_event === undefined ? 0 : echoMs);
  try {
    const told = developer === undefined ? signal.first : Promise.race([signal.first, developer.stop]);
    return await serveUntil(told, terminal, { options, developer });
  } finally {
    signal.forget();
  }
}

async function serveUntil(
  signal: Promise<string>,
  terminal: Terminal,
  { options, developer }: { options: WrittenSettings; developer: ServeForDeveloper | undefined },
): Promise<number> {
  const { warnings, ...reading } = await readConfiguration(terminal.environment, options);
  const { settings } = reading;
  tellWarnings(terminal, warnings);
  await developer?.onConfigured();
  const metrics = createMetrics();
  const log = createLog({
    level: settings.logLevel,
    ...(terminal.log === undefined ? {} : { destination: terminal.log }),
  });
  const observe = fanOut((observation) => {
    if (developer?.show(observation) !== true) log(observation);
  }, metrics.observe);
  const uncaught = hearUncaught(observe);
  exposeCollector();
  try {
    const count = workersOf(settings);
    const begin = (): Promise<Serving> => {
      if (count === 1) return compose({ ...reading, observe, metrics });
      return serveOnWorkers({ count, environment: terminal.environment, written: options, reading, observe });
    };
    const running = await Promise.race([
      start(begin, settings, () => prepare(terminal, options)),
      uncaught.first.then(fail),
    ]);
    tellStarted(terminal, running, reading, developer?.isFirst !== false);
    developer?.onStarted(running.url);
    const ends = [signal, uncaught.first, ...(running.failed === undefined ? [] : [running.failed])];
    return await stopAt(await Promise.race(ends), running, settings);
  } finally {
    uncaught.forget();
  }
}

/** The program in this thread, or its workers. */
type Serving = Pick<Running, 'url' | 'tlsUrl' | 'adminKey' | 'madeSecrets' | 'stop'> & {
  readonly failed?: Promise<never>;
};

function workersOf({ processes }: Settings): number {
  return processes === 'auto' ? availableParallelism() : Number(processes);
}

function tellStarted(
  terminal: Terminal,
  { url, tlsUrl, adminKey, madeSecrets: senderSecrets }: Serving,
  { configuration, settings }: Pick<Reading, 'configuration' | 'settings'>,
  isFirst: boolean,
): void {
  const isNews = isFirst || adminKey !== undefined || senderSecrets.length > 0;
  if (!isNews) {
    terminal.out(`comity listening on ${url}`);
    return;
  }
  tellWarnings(terminal, keyWarnings(settings));
  terminal.stdout.write(
    welcomeText({ url, tlsUrl, data: whereOf(settings), adminKey, senderSecrets, configuration }),
  );
  giveBackMemorySoon();
}

async function stopAt(cause: string | Uncaught, running: Serving, settings: Settings): Promise<number> {
  const reason = typeof cause === 'string' ? cause : 'uncaught error';
  // After an uncaught error nothing is served that has not begun.
  const delayMs = typeof cause === 'string' ? settings.drainDelaySeconds * 1000 : 0;
  const stopped = stop(() => running.stop(reason, delayMs), delayMs + settings.drainMs + lateMs);
  if (typeof cause === 'string') await stopped;
  // The exit code reports the uncaught error, whether the drain succeeded or not.
  else
    await stopped.then(
      () => fail(cause),
      () => fail(cause),
    );
  return exitCodes.done;
}

function fail({ error }: Uncaught): never {
  const message = `ended by an uncaught error: ${error instanceof Error ? error.message : String(error)}`;
  throw new CommandFailure(message, { exitCode: exitCodes.uncaught, cause: error });
}

function keyWarnings({ databaseUrl, secretKey, data }: Settings): readonly string[] {
  if (databaseUrl === undefined || secretKey !== undefined) return [];
  const file = resolve(data, 'secret.key');
  return [
    `COMITY_SECRET_KEY is not set: secrets are encrypted with the key in ${file}, which every process on this database needs`,
  ];
}

/** Location of the data: a folder, or a database without the secret parts of its URL. */
function whereOf({ data, databaseUrl, databaseSchema }: Settings): string {
  if (databaseUrl === undefined) return resolve(data);
  return `${describe(addressOf(databaseUrl))}, schema ${databaseSchema}`;
}

/** Codes of stores that cannot be opened before they are migrated. */
const unprepared = ['schema_outdated', 'store_unfit_rows'];

/** What `comity migrate` does, and keeps the indexes of servers that still run. */
async function prepare(terminal: Terminal, options: WrittenSettings): Promise<void> {
  const { migrate } = await import('./migrate.ts');
  const { packageVersion } = await import('../package-version.ts');
  const flags = { json: false, dryRun: false, yes: true, keepIndexes: true };
  await migrate(terminal, options, flags, packageVersion());
}

async function start(
  begin: () => Promise<Serving>,
  settings: Settings,
  migrateFirst: () => Promise<void>,
): Promise<Serving> {
  try {
    return await begin().catch(async (error: Error & { readonly code?: string }) => {
      if (!settings.migrateAtStart || !unprepared.includes(error.code ?? '')) throw error;
      await migrateFirst();
      return begin();
    });
  } catch (error) {
    const { startFailure } = await import('./start-failure.ts');
    throw startFailure(error, settings);
  }
}

async function stop(run: () => Promise<void>, boundMs: number): Promise<void> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    reject(new CommandFailure(`the program did not stop within ${boundMs} ms and was ended`));
  }, boundMs);
  try {
    await Promise.race([run(), late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Resolves with the name of the first signal, and ends the process on one that comes more than `sameMs` later. */
function hearSignals(sameMs: number): Heard<string> {
  const { promise, resolve: first } = Promise.withResolvers<string>();
  let firstAt: number | undefined;
  const hear = (name: string): void => {
    const now = performance.now();
    if (firstAt === undefined) {
      firstAt = now;
      first(name);
    } else if (now - firstAt >= sameMs) process.exit(exitCodes.interrupted);
  };
  process.on('SIGTERM', hear).on('SIGINT', hear);
  return { first: promise, forget: () => void process.off('SIGTERM', hear).off('SIGINT', hear) };
}

// The output of `serve` when it is ready. The first line is for programs: it is written whole, and no other line on
// stdout begins like it. The rest is for a person: the location of the data, the administrator key and the secrets of
// senders if this start generated them, and three commands to try.

export type Welcome = {
  readonly url: string;
  /** URL of the TLS port beside it. */
  readonly tlsUrl: string | undefined;
  /** Absolute path of the data folder, or the database. */
  readonly data: string;
  /** The administrator key if this start generated it; never a configured one. */
  readonly adminKey: string | undefined;
  /** Secrets of senders that this start generated; never configured ones. */
  readonly senderSecrets: readonly MadeSecret[];
  readonly configuration: Configuration;
};

const keyField = '-H "X-API-Key: $COMITY_ADMIN_KEY"';
const jsonField = "-H 'Content-Type: application/json'";

/** All lines, with the final line break. */
export function welcomeText(welcome: Welcome): string {
  const lines = [`comity listening on ${welcome.url}`];
  if (welcome.tlsUrl !== undefined) lines.push(`and on ${welcome.tlsUrl}`);
  lines.push('', `Data is kept in ${welcome.data}`);
  if (welcome.adminKey !== undefined) {
    lines.push(
      '',
      'An administrator key was created. It is shown only once; keep it:',
      '',
      `  export COMITY_ADMIN_KEY=${welcome.adminKey}`,
    );
  }
  lines.push(...senderLines(welcome));
  const commands = commandsFor(`${welcome.url}${welcome.configuration.base}`, welcome.configuration);
  if (commands.length > 0) lines.push('', 'To try:', '', ...commands.map((command) => `  ${command}`));
  return `${lines.join('\n')}\n\n`;
}

/** The secrets are base64 and need no quoting in a shell. */
function senderLines({ senderSecrets, configuration, url }: Welcome): readonly string[] {
  if (senderSecrets.length === 0) return [];
  const lines = [
    '',
    'Secrets were generated for senders of webhooks. They are shown only once; give each to its sender:',
    '',
    ...senderSecrets.map(({ variable, secret }) => `  export ${variable}=${secret}`),
  ];
  const signed = senderSecrets.map((made) => signedPost(`${url}${configuration.base}`, made, configuration));
  const command = signed.find((each) => each !== undefined);
  return command === undefined ? lines : [...lines, '', 'Then this posts a signed one:', '', `  ${command}`];
}

/** A message that `openssl` signs; undefined if more than the body is signed, which takes more than a line. */
function signedPost(
  base: string,
  { sender, use, variable }: MadeSecret,
  { senders }: Configuration,
): string | undefined {
  const signature = senders.get(sender)?.rule.signature;
  if (use !== 'receive' || signature?.kind !== 'hmac' || signature.signed !== '{body}') return undefined;
  if (signature.key !== 'text' || signature.encoding !== 'hex') return undefined;
  const made = `printf '{}' | openssl dgst -${signature.hash} -hmac "$${variable}" -r | cut -d' ' -f1`;
  const field = `-H "${signature.header}: ${signature.prefix}$signed"`;
  return `signed=$(${made}); curl -i ${field} ${jsonField} -d '{}' ${base}/webhooks/${sender}`;
}

/** Commands to read, to create and to query. */
function commandsFor(base: string, { collections }: Configuration): readonly string[] {
  const all = [...collections.values()];
  const read = all.find(isPublic) ?? all[0];
  if (read === undefined) return [];
  const made = all.find(({ references, examples }) => references.length === 0 && examples.length > 0);
  const queried =
    all.find((candidate) => isPublic(candidate) && numberField(candidate) !== undefined) ?? read;
  const commands = [`curl ${keyFor(read)}${base}/${read.name}`];
  if (made !== undefined) {
    const body = quoted(JSON.stringify(made.examples[0]));
    commands.push(`curl ${keyField} ${jsonField} -d ${body} ${base}/${made.name}`);
  }
  const query = quoted(JSON.stringify(queryFor(queried)));
  commands.push(`curl -X QUERY ${keyFor(queried)}${jsonField} -d ${query} ${base}/${queried.name}`);
  return commands;
}

function queryFor(collection: Collection): Record<string, unknown> {
  const name = numberField(collection);
  if (name === undefined) return { sort: ['-createdAt'], limit: 5 };
  return { filter: { [name]: { gte: 1 } }, sort: [name], limit: 5 };
}

function numberField({ fields }: Collection): string | undefined {
  for (const { name, type } of fields.values()) if (type === 'number' || type === 'integer') return name;
  return undefined;
}

function keyFor(collection: Collection): string {
  return isPublic(collection) ? '' : `${keyField} `;
}

function isPublic({ access }: Collection): boolean {
  return permission(access.read, 'read', anonymous) === 'granted';
}

/** One word of a POSIX shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
