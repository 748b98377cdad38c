/** The clients: how each is fetched with its pinned version, how its program starts, and the settings that its mode `set` has. */
import { copyFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execute, fetchModules, fetchPackages } from '../conduct/program.ts';
import type { Command } from './line-exchange.ts';

export type Mode = 'plain' | 'set' | 'cache';

/** Setting by habit, in words; a habit that is not named has no setting. */
export type Settings = {
  readonly retry?: string;
  readonly follow?: string;
  readonly decode?: string;
  readonly cache?: string;
};

export type Client = {
  readonly name: string;
  /** A pinned version, or where the machine brings the program, what prints it. */
  readonly version: string | readonly [string, ...string[]];
  readonly settings: Settings;
  /** Fetches and builds it in the folder, once for all clients of one source. */
  readonly fetch: (folder: string) => Promise<unknown>;
  readonly start: (folder: string, mode: Mode) => Command;
};

/** Rust compiles for minutes on two processors. */
const buildMsMax = 900_000;
const programs = join(import.meta.dirname, 'programs');

const npm = [
  ...['undici@8.13.1', 'axios@1.21.1', 'got@16.1.0', 'ky@2.1.0', 'make-fetch-happen@16.0.1'],
  ...['axios-retry@4.5.0', 'axios-cache-interceptor@1.12.3'],
];
const pypi = ['requests==2.34.2', 'httpx==0.28.1', 'aiohttp==3.14.5', 'httpie==3.2.4'];
const pypiSet = ['requests-cache==1.3.3', 'hishel==2.0.0', 'httpx-retries==0.6.0', 'aiohttp-retry==2.9.1'];
const pypiCodings = ['brotli==1.2.1', 'zstandard==0.25.0', 'backports.zstd==1.8.0'];
const reqwest = '0.13.5';

/** Runs a step once a folder, for all clients that share it. */
function once(name: string, step: (folder: string) => Promise<unknown>): Client['fetch'] {
  const running = new Map<string, Promise<unknown>>();
  return (parent) => {
    const folder = join(parent, name);
    const standing = running.get(folder) ?? (existsSync(join(folder, 'done')) ? Promise.resolve() : made());
    running.set(folder, standing);
    return standing;

    async function made(): Promise<void> {
      mkdirSync(folder, { recursive: true });
      await step(folder);
      writeFileSync(join(folder, 'done'), '');
    }
  };
}

const fetchNpm = once('npm', (folder) => fetchPackages(folder, npm));
const fetchPypi = once('pypi', async (folder) => {
  await fetchModules(join(folder, 'plain'), pypi);
  await fetchModules(join(folder, 'set'), [...pypi, ...pypiSet, ...pypiCodings]);
});
const fetchGo = once('go', (folder) =>
  execute('go', ['build', '-o', join(folder, 'client'), join(programs, 'client.go')], {
    timeout: buildMsMax,
  }),
);
const fetchRust = once('rust', async (folder) => {
  const manifest = [
    '[package]\nname = "client"\nversion = "0.0.0"\nedition = "2021"\n',
    `[[bin]]\nname = "client"\npath = ${JSON.stringify(join(programs, 'client.rs'))}\n`,
    '[dependencies]\nbase64 = "=0.22.1"',
    `reqwest = { version = "=${reqwest}", default-features = false, features = ["blocking", "gzip", "brotli", "zstd"] }\n`,
  ];
  writeFileSync(join(folder, 'Cargo.toml'), manifest.join('\n'));
  const manifestPath = join(folder, 'Cargo.toml');
  await execute('cargo', ['build', '--quiet', '--manifest-path', manifestPath], { timeout: buildMsMax });
});
/** What the machine has, or has not. */
const installed =
  (...command: readonly [string, ...string[]]): Client['fetch'] =>
  () =>
    execute(command[0], command.slice(1));

function ofNode(name: string, settings: Settings, version?: string): Client {
  const pinned = npm.find((each) => each.startsWith(`${name}@`))?.split('@')[1];
  return {
    name,
    version: version ?? pinned ?? '',
    settings,
    fetch: fetchNpm,
    start: (folder, mode) => {
      // A package is found from the folder of the file that imports it.
      const program = join(folder, 'npm/node.mjs');
      copyFileSync(join(programs, 'node.mjs'), program);
      return { command: process.execPath, args: [program, name.split(' ', 1)[0] ?? '', mode] };
    },
  };
}

function ofPython(name: string, settings: Settings): Client {
  return {
    name,
    version: pypi.find((each) => each.startsWith(`${name}==`))?.split('==')[1] ?? '',
    settings,
    fetch: fetchPypi,
    start: (folder, mode) => ({
      command: 'python3',
      args: [join(programs, 'python.py'), name, mode],
      settings: { PYTHONPATH: join(folder, 'pypi', mode === 'plain' ? 'plain' : 'set') },
    }),
  };
}

function ofCommand(
  name: string,
  settings: Settings,
  { version, fetch }: Pick<Client, 'version' | 'fetch'>,
): Client {
  const program = name.toLowerCase();
  return {
    ...{ name, version, settings, fetch },
    start: (folder, mode) => ({
      command: process.execPath,
      args: [join(programs, 'command-line.mjs'), program, mode, join(folder, `${program}-content`)],
      settings: { PYTHONPATH: join(folder, 'pypi', mode === 'plain' ? 'plain' : 'set') },
    }),
  };
}

export const clients: readonly Client[] = [
  ofCommand(
    'curl',
    { retry: '`--retry 2 --retry-all-errors`', follow: '`--location`', decode: '`--compressed`' },
    { version: ['curl', '--version'], fetch: installed('curl', '--version') },
  ),
  ofCommand('wget2', {}, { version: ['wget2', '--version'], fetch: installed('wget2', '--version') }),
  ofCommand(
    'HTTPie',
    { follow: '`--follow`', decode: '`brotli`, `backports.zstd`' },
    {
      version: pypi.find((each) => each.startsWith('httpie'))?.split('==')[1] ?? '',
      fetch: fetchPypi,
    },
  ),
  ofPython('httpx', {
    retry: '`httpx-retries`, `allowed_methods`',
    follow: '`follow_redirects=True`',
    decode: '`brotli`, `zstandard`',
    cache: '`hishel`, `supported_methods`',
  }),
  ofPython('requests', {
    retry: '`Retry(allowed_methods, status_forcelist)`',
    decode: '`brotli`, `backports.zstd`',
    cache: '`requests-cache`, `allowable_methods`',
  }),
  ofPython('aiohttp', {
    retry: '`aiohttp-retry`, `methods`, `statuses`',
    decode: '`brotli`, `backports.zstd`',
  }),
  {
    name: 'Go net/http',
    version: ['go', 'version'],
    settings: { retry: '`Idempotency-Key`' },
    fetch: fetchGo,
    start: (folder, mode) => ({ command: join(folder, 'go/client'), args: [mode] }),
  },
  {
    name: 'Java HttpClient',
    version: ['java', '--version'],
    settings: { retry: '`jdk.httpclient.enableAllMethodRetry`', follow: '`followRedirects(NORMAL)`' },
    fetch: installed('java', '--version'),
    start: (_, mode) => ({
      command: 'java',
      args: [
        ...(mode === 'set' ? ['-Djdk.httpclient.enableAllMethodRetry=true'] : []),
        ...[join(programs, 'client.java'), mode],
      ],
    }),
  },
  {
    name: 'Rust reqwest',
    version: reqwest,
    settings: { retry: '`retry::for_host`', decode: 'features `gzip`, `brotli`, `zstd`' },
    fetch: fetchRust,
    start: (folder, mode) => ({ command: join(folder, 'rust/target/debug/client'), args: [mode] }),
  },
  {
    name: 'Ruby Net::HTTP',
    version: ['ruby', '--version'],
    settings: {},
    fetch: installed('ruby', '--version'),
    start: () => ({ command: 'ruby', args: [join(programs, 'client.rb')] }),
  },
  {
    name: 'PHP curl',
    version: ['php', '--version'],
    settings: { follow: '`CURLOPT_FOLLOWLOCATION`', decode: "`CURLOPT_ENCODING` with `''`" },
    fetch: installed('php', '-r', 'curl_init();'),
    start: (_, mode) => ({ command: 'php', args: [join(programs, 'client.php'), mode] }),
  },
  ofNode('fetch of Node', {}, process.versions.node),
  ofNode('undici', {
    retry: '`interceptors.retry({ methods })`',
    follow: '`interceptors.redirect()`',
    decode: '`interceptors.decompress()`',
    cache: '`interceptors.cache({ methods })`',
  }),
  ofNode('axios', {
    retry: '`axios-retry`, `retryCondition`',
    cache: '`axios-cache-interceptor`, `methods`',
  }),
  ofNode('got', { cache: '`cache`' }),
  ofNode('ky', {}),
  ofNode('make-fetch-happen', { retry: '`retry`' }),
];

/** The name with the version that runs. */
export async function titleOf({ name, version }: Client): Promise<string> {
  if (typeof version === 'string') return `${name} ${version}`;
  const { stdout } = await execute(version[0], version.slice(1));
  return `${name} ${/\d+(\.\d+)+/.exec(stdout)?.[0] ?? ''}`;
}
