/**
 * OpenStack Swift with its S3 interface (s3api), as Debian packages it: one process of each kind over a folder, on free ports of the loopback
 * address, with a key and an empty bucket; no tests. It needs neither root nor a daemon of the machine.
 */
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { AwsClient } from 'aws4fetch';
import { listen } from '../../harness/listening.ts';
import type { S3Credential } from '../../harness/s3-signature.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';
import { patienceMs, until } from '../../harness/until.ts';
import { findCommand } from '../clients/command.ts';

/** A bucket that is there, and who may use it. */
export type RealBucket = {
  readonly filesUrl: string;
  readonly credential: S3Credential;
  close(): void;
};

const kinds = ['account', 'container', 'object'] as const;

/** Filters that s3api needs; the proxy adds those that it lacks. No memcached answers: what it would keep is looked up each time. */
const proxyFilters = `
[pipeline:main]
pipeline = catch_errors cache listing_formats s3api tempauth slo proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
error_suppression_interval = 0
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:1
[filter:listing_formats]
use = egg:swift#listing_formats
[filter:s3api]
use = egg:swift#s3api
[filter:tempauth]
use = egg:swift#tempauth
user_comity_files = swift-secret .admin
[filter:slo]
use = egg:swift#slo
`;

/** A ring of one device for each server of objects, containers and accounts: nine calls of swift-ring-builder take longer than all else. */
const makeRings = `
import sys
from swift.common.ring import RingBuilder
for kind, port in (each.split(':') for each in sys.argv[2:]):
    ring = RingBuilder(4, 1, 0)
    ring.add_dev({'id': 0, 'region': 1, 'zone': 1, 'weight': 1, 'ip': '127.0.0.1', 'port': int(port), 'device': 'd1'})
    ring.rebalance()
    ring.get_ring().save('%s/%s.ring.gz' % (sys.argv[1], kind))
`;

/** Runs a server until its input ends, which it does with the test's process at the latest. */
const withParent = '"$@" </dev/null & read -r _; kill -9 $!';

/** Undefined: the machine has no Swift. */
export async function startSwift(): Promise<RealBucket | undefined> {
  const programs = [...kinds, 'proxy'].map((kind) => findCommand(`swift-${kind}-server`));
  if (programs.includes(undefined)) return undefined;
  const folder = temporaryFolder();
  const ports = await freePorts(programs.length);
  mkdirSync(join(folder, 'devices/d1'), { recursive: true });
  writeFileSync(
    join(folder, 'swift.conf'),
    '[swift-hash]\nswift_hash_path_suffix = test\n[storage-policy:0]\nname = one\ndefault = yes\n',
  );
  execFileSync('/usr/bin/python3', [
    '-c',
    makeRings,
    folder,
    ...kinds.map((kind, at) => `${kind}:${ports[at]}`),
  ]);
  const children = [...kinds, 'proxy' as const].map((kind, at) => {
    const server = `
[DEFAULT]
bind_ip = 127.0.0.1
bind_port = ${ports[at]}
workers = 0
user = ${userInfo().username}
swift_dir = ${folder}
devices = ${join(folder, 'devices')}
mount_check = false
`;
    const filters = `[pipeline:main]\npipeline = ${kind}-server\n[app:${kind}-server]\nuse = egg:swift#${kind}\n`;
    const file = join(folder, `${kind}-server.conf`);
    writeFileSync(file, server + (kind === 'proxy' ? proxyFilters : filters));
    return spawn('/bin/sh', ['-c', withParent, 'sh', programs[at] ?? '', file], {
      stdio: ['pipe', 'ignore', 'ignore'],
    });
  });
  const close = (): void => {
    for (const { stdin } of children) stdin.end();
  };
  const endpoint = `http://127.0.0.1:${ports.at(-1)}`;
  const credential = { accessKey: 'comity:files', secretKey: 'swift-secret' };
  const client = new AwsClient({
    accessKeyId: credential.accessKey,
    secretAccessKey: credential.secretKey,
    service: 's3',
    retries: 0,
  });
  const isMade = async (): Promise<boolean> => {
    const made = await client.fetch(`${endpoint}/files`, { method: 'PUT' }).catch(() => undefined);
    return made?.status === 200;
  };
  await until(isMade, 'Swift makes a bucket', 3 * patienceMs);
  return { filesUrl: `s3://files?endpoint=${endpoint}`, credential, close };
}

async function freePorts(count: number): Promise<readonly number[]> {
  const servers = await Promise.all(Array.from({ length: count }, () => listen(createServer())));
  for (const server of servers) await server.close();
  return servers.map(({ port }) => port);
}
