/** `comity secrets rotate` on PostgreSQL while servers go on, and a start with another key. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runCommand } from '../../harness/command-line.ts';
import { emptyDatabase } from '../../harness/postgres-database.ts';
import {
  type RunningServer as Server,
  shopConfig as shop,
  startServer,
} from '../../harness/running-server.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';

const one = '1a'.repeat(32);
const two = '2b'.repeat(32);

async function jwksOf(server: Server): Promise<string> {
  return (await fetch(`${server.url}/.well-known/jwks.json`)).text();
}

test('changes the key on PostgreSQL while servers go on, which then need the new one alone', async (context) => {
  const database = await emptyDatabase();
  context.after(() => database.dispose());
  const common = { COMITY_DATABASE_URL: database.url, COMITY_CONFIG: shop, COMITY_DATA: temporaryFolder() };
  const both = { ...common, COMITY_SECRET_KEY: two, COMITY_SECRET_KEY_PREVIOUS: one };
  const old = await startServer({ env: { ...common, COMITY_SECRET_KEY: one } });
  const jwks = await jwksOf(old);
  const next = await startServer({ env: both });
  assert.equal(await jwksOf(next), jwks);
  await old.stop();
  const rotated = await runCommand(['secrets', 'rotate'], { ...both, COMITY_DATABASE_POLL_MS: '100' });
  assert.deepEqual([rotated.code, rotated.stderr], [0, '']);
  assert.match(
    rotated.stdout,
    /^\d+ secrets were encrypted anew; .*\nServers no longer need COMITY_SECRET_KEY_PREVIOUS/,
  );
  assert.equal(await jwksOf(next), jwks);
  await next.stop();
  const last = await startServer({ env: { ...common, COMITY_SECRET_KEY: two } });
  assert.equal(await jwksOf(last), jwks);
  await last.stop();
  const refused = await runCommand(['serve'], { ...common, COMITY_SECRET_KEY: one, COMITY_PORT: '0' });
  assert.equal(refused.code, 1);
  assert.match(
    refused.stderr,
    /^comity: the secrets in the store are encrypted with the key \w+, and COMITY_SECRET_KEY is/m,
  );
  assert.ok(!refused.stderr.includes(one) && !refused.stderr.includes(two));
});
