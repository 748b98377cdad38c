/** A program whose conduct is compared: where its collection of notes is, and how it is fetched and started. Comity is one of them. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Target } from '../../conduct/target.ts';
import { freePort, startPeer } from '../connections/peer-program.ts';
import { detectPinning } from '../pin.ts';

export const execute = promisify(execFile);
export const fetchMsMax = 180_000;
const root = join(import.meta.dirname, '../..');

export type Started = {
  /** Scheme and authority. */
  readonly url: string;
  readonly stop: () => Promise<void>;
};

export type Program = {
  readonly name: string;
  readonly version: string;
  /** The path of the collection. */
  readonly collection: string;
  /** What its target file says beside the collection; a sample and a change of a note with a title unless given. */
  readonly target?: Partial<Pick<Target, 'sample' | 'change' | 'headers' | 'idMember'>>;
  /** The file below bench/conduct/ that configures it. */
  readonly file?: string;
  /** Fetches it into the folder and starts it there. @param origin the port of Comity, for proxies */
  readonly start: (folder: string, origin: number) => Promise<Started>;
};

/** A program that builds its tables at the start takes half a minute. */
export const pinning = { ...detectPinning(), pinned: false, readyMsMax: 120_000 };

export const comity: Program = {
  name: 'Comity',
  version: '0.1.0',
  collection: '/api/v1/notes',
  start: (folder) =>
    startOnPort(process.execPath, [join(root, 'dist/main.js'), 'serve'], {
      settingsOf: (port) => ({
        COMITY_CONFIG: join(import.meta.dirname, 'notes.config.ts'),
        COMITY_DATA: join(folder, 'data'),
        COMITY_PORT: String(port),
        COMITY_ADMIN_KEY: 'sk_conduct_0123456789',
        COMITY_LOG_LEVEL: 'error',
      }),
    }),
};

type Settings = Readonly<Record<string, string>>;

type Surroundings = {
  /** Its working folder; that of the run unless given. */
  readonly folder?: string;
  /** Its environment beside that of the run; PORT unless given. */
  readonly settingsOf?: (port: number) => Settings;
};

/** Starts a program that reads its port from its environment. */
export async function startOnPort(
  command: string,
  args: readonly string[],
  { folder = '.', settingsOf = (port) => ({ PORT: String(port) }) }: Surroundings = {},
): Promise<Started> {
  const port = await freePort();
  const words = Object.entries(settingsOf(port)).map(([name, value]) => `${name}=${value}`);
  return started(port, await startPeer(pinning, port, 'env', ['-C', folder, ...words, command, ...args]));
}

export function started(port: number, { stop }: Pick<Started, 'stop'>): Started {
  return { url: `http://127.0.0.1:${port}`, stop };
}

/** Installs packages of npm, `name@version`, in the folder. */
export async function fetchPackages(folder: string, packages: readonly string[]): Promise<void> {
  const quiet = ['--no-audit', '--no-fund', '--ignore-scripts'];
  await execute('npm', ['install', '--prefix', folder, ...quiet, ...packages], { timeout: fetchMsMax });
}

/** Installs packages of PyPI, `name==version`, in the folder. */
export async function fetchModules(folder: string, packages: readonly string[]): Promise<void> {
  const quiet = ['--quiet', '--disable-pip-version-check', '--target', folder];
  await execute('python3', ['-m', 'pip', 'install', ...quiet, ...packages], { timeout: fetchMsMax });
}

type Sending = { readonly method?: string; readonly headers?: Readonly<Record<string, string>> };

/** Sends JSON to a program that is set up, by POST unless given. @throws where it is refused */
export async function send(
  url: string,
  content: object,
  { method = 'POST', headers = {} }: Sending = {},
): Promise<Readonly<Record<string, unknown>>> {
  const answer = await fetch(url, {
    ...{ method, body: JSON.stringify(content) },
    headers: { 'Content-Type': 'application/json', ...headers },
  });
  if (!answer.ok) throw new Error(`${method} ${url} is answered ${answer.status}: ${await answer.text()}`);
  return (await answer.json()) as Readonly<Record<string, unknown>>;
}
