/** Proxies of Debian before one Comity, each with the shortest configuration of its documentation. One that is not installed says so. */
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort, startPeer } from '../connections/peer-program.ts';
import { comity, type Program, pinning, started } from './program.ts';

export const proxies: readonly Program[] = [
  proxy('nginx', '/usr/sbin/nginx', (folder, port, origin) => {
    const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
      (name) => `${name}_temp_path ${folder}/nginx-${name};`,
    );
    const location = `location / { proxy_pass http://127.0.0.1:${origin}; proxy_http_version 1.1; proxy_set_header Host $http_host; }`;
    const server = `server { listen 127.0.0.1:${port}; ${location} }`;
    const lines = [
      'daemon off;',
      `pid ${folder}/nginx.pid;`,
      'events {}',
      'http { access_log off;',
      ...paths,
      server,
      '}',
    ];
    writeFileSync(join(folder, 'nginx.conf'), lines.join('\n'));
    return ['-c', join(folder, 'nginx.conf'), '-e', join(folder, 'nginx.log')];
  }),
  proxy('HAProxy', '/usr/sbin/haproxy', (folder, port, origin) => {
    const lines = [
      ...['defaults', 'mode http', 'timeout connect 5s', 'timeout client 30s', 'timeout server 30s'],
      ...['listen front', `bind 127.0.0.1:${port}`, `server origin 127.0.0.1:${origin}`, ''],
    ];
    writeFileSync(join(folder, 'haproxy.cfg'), lines.join('\n'));
    return ['-db', '-f', join(folder, 'haproxy.cfg')];
  }),
  proxy('Varnish', '/usr/sbin/varnishd', (folder, port, origin) => [
    ...[
      '-F',
      '-a',
      `127.0.0.1:${port}`,
      '-b',
      `127.0.0.1:${origin}`,
      '-n',
      join(folder, 'varnish'),
      '-j',
      'none',
    ],
  ]),
  proxy('Apache', '/usr/sbin/apache2', (folder, port, origin) => {
    const modules = ['mpm_event', 'authz_core', 'proxy', 'proxy_http'].map(
      (name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`,
    );
    const lines = [
      ...[...modules, `ServerRoot ${folder}`, `PidFile ${folder}/apache.pid`, `Listen 127.0.0.1:${port}`],
      ...['ServerName localhost', `ErrorLog ${folder}/apache.log`, 'ProxyPreserveHost On'],
      ...[`ProxyPass / http://127.0.0.1:${origin}/`, `ProxyPassReverse / http://127.0.0.1:${origin}/`, ''],
    ];
    writeFileSync(join(folder, 'apache.conf'), lines.join('\n'));
    return ['-X', '-f', join(folder, 'apache.conf')];
  }),
];

type Arguments = (folder: string, port: number, origin: number) => readonly string[];

function proxy(name: string, path: string, argumentsOf: Arguments): Program {
  return {
    name,
    version: 'of Debian',
    collection: comity.collection,
    start: async (folder, origin) => {
      if (!existsSync(path)) throw new Error(`it is not installed (${path})`);
      const port = await freePort();
      return started(port, await startPeer(pinning, port, path, argumentsOf(folder, port, origin)));
    },
  };
}
