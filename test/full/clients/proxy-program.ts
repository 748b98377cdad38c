/** A real proxy before Comity, with a configuration that is shown to readers, as it stands but for ports, files and names. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { cert, key } from '../../accounts/mail/certificate.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';
import { until } from '../../harness/until.ts';
import { freePort } from '../../wire/free-port.ts';

export type Place = { readonly folder: string; readonly port: number };

export type ProxyProgram = {
  readonly command: string;
  /** The name of its file, where the program goes by that. */
  readonly file?: string;
  /** What readers are shown, and what stands there in the test. */
  edits(place: Place): Readonly<Record<string, string>>;
  /** What a whole file needs around what readers are shown. */
  around?(place: Place): readonly [string, string];
  args(place: Place, file: string): readonly string[];
  /** Default: SIGKILL. */
  readonly stopSignal?: 'SIGTERM';
};

const certificate = '/etc/ssl/shop.example.pem';
const certificateKey = '/etc/ssl/shop.example.key';

export const tlsFiles = ({ folder }: Place) => ({
  [certificate]: join(folder, 'cert.pem'),
  [certificateKey]: join(folder, 'key.pem'),
});

export const nginx: ProxyProgram = {
  command: 'nginx',
  edits: (place) => ({
    ...tlsFiles(place),
    'listen 443': `listen 127.0.0.1:${place.port}`,
    'server_name shop.example': 'server_name localhost',
  }),
  around: ({ folder }) => {
    const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
      (name) => `${name}_temp_path ${join(folder, name)};`,
    );
    // Its worker stores uploads in the folder of the test.
    return [
      `daemon off; user ${userInfo().username}; pid ${join(folder, 'pid')}; error_log stderr; worker_processes 1;
events { worker_connections 64; } http { access_log off; ${temporary.join(' ')}\n`,
      '}',
    ];
  },
  args: ({ folder }, file) => ['-p', folder, '-e', 'stderr', '-c', file],
};

export const haproxy: ProxyProgram = {
  command: 'haproxy',
  edits: ({ folder, port }) => ({
    [certificate]: join(folder, 'both.pem'),
    ':443': `127.0.0.1:${port}`,
  }),
  args: (_place, file) => ['-db', '-f', file],
};

export const caddy: ProxyProgram = {
  command: 'caddy',
  edits: ({ folder, port }) => ({
    'shop.example {': `https://localhost:${port} {\n  tls ${join(folder, 'cert.pem')} ${join(folder, 'key.pem')}`,
  }),
  around: () => ['{\n  admin off\n  auto_https disable_redirects\n}\n', ''],
  args: (_place, file) => ['run', '--adapter', 'caddyfile', '--config', file],
};

export type RunningProxy = { readonly port: number; stop(): Promise<void> };

/**
 * @param shown the configuration; each place that the test changes must be there
 * @param more further changes, of the addresses of programs
 * @param answers whether the proxy at this port serves
 */
export async function startProxy(
  proxy: ProxyProgram,
  path: string,
  shown: string,
  more: Readonly<Record<string, string>>,
  answers: (port: number) => Promise<boolean>,
): Promise<RunningProxy> {
  const place = { folder: temporaryFolder(), port: await freePort() };
  // Varnish compiles its configuration as a user of its own.
  chmodSync(place.folder, 0o755);
  writeFileSync(join(place.folder, 'cert.pem'), cert);
  writeFileSync(join(place.folder, 'key.pem'), key);
  writeFileSync(join(place.folder, 'both.pem'), cert + key);
  const file = join(place.folder, proxy.file ?? 'configuration');
  writeFileSync(file, configurationOf(proxy, place, shown, more));
  const child: ChildProcess = spawn(path, proxy.args(place, file), {
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { HOME: place.folder, PATH: process.env.PATH },
  });
  let told = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    told += text;
  });
  await until(async () => {
    assert.equal(child.exitCode, null, `${proxy.command} did not start: ${told}`);
    return await answers(place.port);
  });
  return {
    port: place.port,
    stop: async () => {
      if (child.exitCode !== null) return;
      // With its workers, and at once: Caddy waits a minute for connections that have ended.
      process.kill(-(child.pid ?? assert.fail()), proxy.stopSignal ?? 'SIGKILL');
      await once(child, 'exit');
    },
  };
}

function configurationOf(
  proxy: ProxyProgram,
  place: Place,
  shown: string,
  more: Readonly<Record<string, string>>,
): string {
  let text = shown;
  for (const [there, used] of Object.entries({ ...proxy.edits(place), ...more })) {
    assert.ok(text.includes(there), `the configuration of ${proxy.command} has ${there}`);
    text = text.replaceAll(there, used);
  }
  const [start = '', end = ''] = proxy.around?.(place) ?? [];
  return start + text + end;
}

/** Whether the port takes connections. */
export async function answersAt(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  return new Promise((resolve) => {
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
