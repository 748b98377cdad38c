/**
 * The proxies of Debian that tunnels are compared with: squid, tinyproxy and Apache, each with a configuration that lets everything
 * through, asks for no credential and writes no access log. Found by their paths; what is not installed is left out.
 */
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Pinning } from '../pin.ts';
import { freePort, type PeerProgram, startPeer } from './peer-program.ts';

/** More than are ever open, as far as the limit of files lets them. */
const clientsMax = 20_000;
const worldReadable = 0o755;

export type DebianName = 'squid' | 'tinyproxy' | 'apache2';
export const debianPaths: Readonly<Record<DebianName, string>> = {
  squid: '/usr/sbin/squid',
  tinyproxy: '/usr/bin/tinyproxy',
  apache2: '/usr/sbin/apache2',
};

/** @param folder a new one is made in it @returns undefined where it is not installed */
export async function startDebianProxy(
  pinning: Pinning,
  folder: string,
  name: DebianName,
): Promise<PeerProgram | undefined> {
  const command = debianPaths[name];
  if (!existsSync(command)) return undefined;
  const port = await freePort();
  const own = join(folder, `${name}-${port}`);
  mkdirSync(own, { recursive: true });
  // Those started as root become another user.
  chmodSync(folder, worldReadable);
  const file = join(own, `${name}.conf`);
  writeFileSync(file, configurations[name](own, port));
  return await startPeer(pinning, port, command, commandLines[name](file));
}

const commandLines: Readonly<Record<DebianName, (file: string) => readonly string[]>> = {
  squid: (file) => ['-N', '-f', file],
  tinyproxy: (file) => ['-d', '-c', file],
  apache2: (file) => ['-DFOREGROUND', '-f', file],
};

const configurations: Readonly<Record<DebianName, (own: string, port: number) => string>> = {
  squid(own, port) {
    const user = owner(own, 'proxy');
    return [
      `http_port 127.0.0.1:${port}`,
      `pid_filename ${own}/squid.pid`,
      // Names shared memory, so that two of them do not meet.
      `visible_hostname bench.invalid`,
      `cache_log ${own}/cache.log`,
      ...['access_log none', 'cache_store_log none', 'cache deny all', 'cache_mem 0'],
      ...['memory_cache_mode disk', 'pinger_enable off', 'shutdown_lifetime 0 seconds'],
      `max_filedescriptors ${clientsMax}`,
      `coredump_dir ${own}`,
      ...(user === undefined ? [] : [`cache_effective_user ${user}`]),
      'http_access allow all',
      '',
    ].join('\n');
  },
  tinyproxy: (own, port) =>
    [
      ...[`Port ${port}`, 'Listen 127.0.0.1', 'Allow 127.0.0.1', 'Timeout 600'],
      ...[`MaxClients ${clientsMax}`, 'LogLevel Critical', `LogFile "${own}/log"`],
      `PidFile "${own}/pid"`,
      '',
    ].join('\n'),
  apache2(own, port) {
    const user = owner(own, 'www-data');
    const modules = ['mpm_event', 'authz_core', 'proxy', 'proxy_connect'];
    return [
      `ServerRoot ${own}`,
      'ServerName localhost',
      `DefaultRuntimeDir ${own}`,
      `PidFile ${own}/pid`,
      `Listen 127.0.0.1:${port}`,
      `ErrorLog ${own}/log`,
      ...modules.map((name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`),
      ...(user === undefined ? [] : [`User ${user}`, `Group ${user}`]),
      ...['ProxyRequests On', 'AllowCONNECT 1-65535', '<Proxy *>', 'Require all granted', '</Proxy>', ''],
    ].join('\n');
  },
};

/** Gives the folder to the user that the program becomes when root starts it; undefined where nobody changes. */
function owner(own: string, name: string): string | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((entry) => entry.startsWith(`${name}:`));
  if (line === undefined) return undefined;
  const [, , user, group] = line.split(':').map(Number);
  if (user !== undefined && group !== undefined) chownSync(own, user, group);
  return name;
}
