/** `/metrics` over the wire: who reads them, and that the dashboard of `deploy` shows what is there. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { serverOfFile, startServer } from '../../harness/running-server.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';

const token = 'scrape-0123456789';
const server = await serverOfFile({ env: { COMITY_METRICS_TOKEN: token } });

const statusFor = async (path: string, authorization: string | undefined): Promise<number> => {
  const headers = authorization === undefined ? {} : { Authorization: authorization };
  return (await server.send('GET', path, { anonymous: true, headers })).status;
};

describe('the token of the metrics', () => {
  test('reads the metrics as Bearer, and the administrator still does', async () => {
    assert.equal(await statusFor('/metrics', `Bearer ${token}`), 200);
    assert.equal((await server.send('GET', '/metrics')).status, 200);
  });

  for (const [what, authorization, status] of [
    ['no credential', undefined, 401],
    ['another token', `Bearer ${token}x`, 401],
    ['the beginning of the token', `Bearer ${token.slice(0, -1)}`, 401],
    ['another scheme', `ApiKey ${token}`, 401],
  ] as const)
    test(`is refused as ${what}`, async () => {
      assert.equal(await statusFor('/metrics', authorization), status);
    });

  for (const path of ['/api/v1/products', '/api/v1/meta/settings', '/api/v1/keys', '/api/v1/auth/me'])
    test(`opens no other path: ${path}`, async () => {
      assert.equal(await statusFor(path, `Bearer ${token}`), 401);
    });

  test('comes from a file', async (context) => {
    const file = join(temporaryFolder(), 'token');
    writeFileSync(file, `${token}-of-a-file\n`);
    const other = await startServer({ env: { COMITY_METRICS_TOKEN_FILE: file } });
    context.after(() => other.stop());
    const headers = { Authorization: `Bearer ${token}-of-a-file` };
    assert.equal((await other.send('GET', '/metrics', { anonymous: true, headers })).status, 200);
  });

  test('of 15 characters prevents the start', async () => {
    await assert.rejects(
      startServer({ env: { COMITY_METRICS_TOKEN: 'x'.repeat(15) } }),
      /METRICS_TOKEN must be 16 or more/,
    );
  });
});

type Panel = { readonly title: string; readonly targets?: readonly { readonly expr: string }[] };

test('each metric of the Grafana dashboard is exported, with the labels that it groups by', async () => {
  const { panels } = JSON.parse(readFileSync('deploy/grafana.json', 'utf8')) as { panels: readonly Panel[] };
  // Counters of senders begin with the first message.
  await server.send('POST', '/api/v1/webhooks/billing', { anonymous: true, json: {} });
  const { body } = await server.send('GET', '/metrics');
  const seen = new Map<string, string>();
  for (const [, name = '', labels = ''] of body.matchAll(/^(\w+)(?:\{(.*)\})? /gm))
    seen.set(name, `${seen.get(name) ?? ''},${labels}`);
  // What has labels has no sample before the first event.
  for (const [, name = '', type] of body.matchAll(/^# TYPE (\w+) (counter|histogram)$/gm))
    for (const each of type === 'counter' ? [name] : ['_bucket', '_sum', '_count'].map((end) => name + end))
      if (!seen.has(each)) seen.set(each, '');
  let count = 0;
  for (const { title, targets = [] } of panels) {
    for (const { expr } of targets) {
      const names = [...expr.matchAll(/\b((?:comity|process|nodejs)_\w+)\{/g)].map(([, name = '']) => name);
      assert.ok(names.length > 0, expr);
      for (const name of names) assert.ok(seen.has(name), `${title}: ${name}`);
      const [, by = ''] = /\bby \(([^)]*)\)/.exec(expr) ?? [];
      for (const label of by.split(', ').filter((each) => each !== ''))
        assert.match(
          seen.get(names[0] ?? '') || `${label}="`,
          new RegExp(`(^|,)${label}="`),
          `${title}: ${label}`,
        );
      count += 1;
    }
  }
  assert.ok(count > 30, String(count));
});
