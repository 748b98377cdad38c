/** The certificate of the TLS port: what is said of a pair that cannot serve, and how changed files are noticed. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdir, rename, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { connect } from 'node:tls';
import type { Observation } from '../../../../src/observe/observation.ts';
import { openCertificate } from '../../../../src/server/certificate.ts';
import { createListener } from '../../../../src/server/listener.ts';
import { temporaryFolder } from '../../../harness/temporary-folder.ts';
import { until } from '../../../harness/until.ts';
import { firstPair, type PemPair, secondPair } from '../certificates.ts';
import { echo } from '../serve.ts';

const lookMs = 10;

async function folderOf(_t: TestContext): Promise<string> {
  const folder = temporaryFolder();
  return folder;
}

async function write(folder: string, { cert, key }: PemPair) {
  await mkdir(folder, { recursive: true });
  const paths = { certificate: join(folder, 'cert.pem'), key: join(folder, 'key.pem') };
  await writeFile(paths.certificate, cert);
  await writeFile(paths.key, key);
  return paths;
}

async function open(t: TestContext, paths: { certificate: string; key: string }) {
  const observed: Observation[] = [];
  const certificate = await openCertificate(paths, (fact) => observed.push(fact), lookMs);
  t.after(() => certificate.close());
  const subjects = () =>
    observed.flatMap((fact) => (fact.kind === 'certificate-loaded' ? [fact.subject] : []));
  const failures = () => observed.filter((fact) => fact.kind === 'certificate-failed');
  return { certificate, observed, subjects, failures };
}

test('says which file of which setting cannot serve, and why', async (t) => {
  const folder = await folderOf(t);
  const { certificate, key } = await write(folder, firstPair);
  const other = await write(join(folder, 'other'), secondPair);
  const observe = () => undefined;
  const missing = join(folder, 'missing.pem');
  const rows = [
    [{ certificate: missing, key }, `COMITY_TLS_CERT: ${missing} cannot be read: ENOENT`],
    [{ certificate, key: missing }, `COMITY_TLS_KEY: ${missing} cannot be read: ENOENT`],
    [{ certificate: key, key }, `COMITY_TLS_CERT: ${key} is not a certificate in PEM`],
    [{ certificate, key: certificate }, `COMITY_TLS_KEY: ${certificate} is not a private key in PEM`],
    [
      { certificate, key: other.key },
      `the key of COMITY_TLS_KEY (${other.key}) does not belong to the certificate of COMITY_TLS_CERT (${certificate})`,
    ],
  ] as const;
  for (const [paths, message] of rows) {
    await assert.rejects(openCertificate(paths, observe), (error: Error) => {
      assert.equal(error.name, 'ConfigurationError');
      assert.equal(error.message.slice(0, message.length), message);
      return true;
    });
  }
});

const swaps: readonly [
  string,
  (folder: string) => Promise<{ paths: { certificate: string; key: string }; swap: () => Promise<void> }>,
][] = [
  [
    'written over',
    async (folder) => ({
      paths: await write(folder, firstPair),
      swap: async () => void (await write(folder, secondPair)),
    }),
  ],
  [
    'renamed over',
    async (folder) => {
      const paths = await write(folder, firstPair);
      const next = await write(join(folder, 'next'), secondPair);
      return {
        paths,
        swap: async () => {
          await rename(next.key, paths.key);
          await rename(next.certificate, paths.certificate);
        },
      };
    },
  ],
  [
    'behind a folder that is swapped, as in Kubernetes',
    async (folder) => {
      await write(join(folder, '1'), firstPair);
      await write(join(folder, '2'), secondPair);
      await symlink('1', join(folder, 'data'));
      return {
        paths: { certificate: join(folder, 'data/cert.pem'), key: join(folder, 'data/key.pem') },
        swap: async () => {
          await symlink('2', join(folder, 'next'));
          await rename(join(folder, 'next'), join(folder, 'data'));
        },
      };
    },
  ],
];

for (const [how, prepare] of swaps) {
  test(`loads a pair that was ${how}`, async (t) => {
    const { paths, swap } = await prepare(await folderOf(t));
    const { certificate, subjects, failures } = await open(t, paths);
    const changed: string[] = [];
    certificate.onChange(({ cert }) => changed.push(cert.toString()));
    assert.deepEqual(subjects(), ['CN=test1.invalid']);
    await swap();
    await until(() => subjects().length === 2);
    assert.deepEqual(subjects(), ['CN=test1.invalid', 'CN=test2.invalid']);
    assert.deepEqual(changed, [secondPair.cert]);
    assert.equal(certificate.pair().key.toString(), secondPair.key);
    assert.deepEqual(failures(), []);
  });
}

test('keeps the pair before while the new one is half written, says so once, and takes it when it is whole', async (t) => {
  const folder = await folderOf(t);
  const paths = await write(folder, firstPair);
  const { certificate, subjects, failures } = await open(t, paths);
  await writeFile(paths.certificate, secondPair.cert);
  await until(() => failures().length > 0);
  // Several looks more.
  await new Promise((resolve) => setTimeout(resolve, 5 * lookMs));
  assert.equal(failures().length, 1);
  assert.equal(certificate.pair().cert.toString(), firstPair.cert);
  await writeFile(paths.key, secondPair.key);
  await until(() => subjects().length === 2);
  assert.equal(certificate.pair().cert.toString(), secondPair.cert);
});

test('serves the new certificate to new connections and keeps the open ones', async (t) => {
  const paths = await write(await folderOf(t), firstPair);
  const { certificate, subjects } = await open(t, paths);
  const listener = createListener({ handler: echo, observe: () => undefined, apiVersion: '1' });
  const { port } = await listener.listen('127.0.0.1', 0, {
    tls: { certificate, alpn: 'http/1.1', port: undefined },
  });
  t.after(() => listener.drain(0));
  const shake = async () => {
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false });
    t.after(() => socket.destroy());
    await once(socket, 'secureConnect');
    return socket;
  };
  const before = await shake();
  assert.equal(before.getPeerCertificate().subject.CN, 'test1.invalid');
  await write(join(paths.certificate, '..'), secondPair);
  await until(() => subjects().length === 2);
  assert.equal((await shake()).getPeerCertificate().subject.CN, 'test2.invalid');
  before.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  assert.match(String((await once(before, 'data'))[0]), /^HTTP\/1\.1 200/);
});
