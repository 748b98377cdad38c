/** No secret that the program keeps can be found in its files, its database or a backup. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { runCommand } from '../harness/command-line.ts';
import { engineNames } from '../harness/engine-names.ts';
import { databaseOfProgram } from '../harness/program-database.ts';
import { shopConfig, startServer } from '../harness/running-server.ts';
import { temporaryFolder } from '../harness/temporary-folder.ts';

for (const engine of engineNames) {
  test(`secrets are in no file of ${engine} and in no backup, and are good after a restart`, async (context) => {
    if (engine === 'SQLite' && process.env.COMITY_TEST_STORE === 'postgres') {
      return context.skip('the program has a database there');
    }
    const folder = temporaryFolder();
    const database = engine === 'PostgreSQL' ? await databaseOfProgram(shopConfig) : undefined;
    if (database !== undefined) after(() => database.dispose());
    const data = join(folder, 'data');
    const env = database === undefined ? {} : { COMITY_DATABASE_URL: database.url };
    const program = await startServer({ folder: data, env });
    const json = { url: 'https://shop.example/h', events: ['*'], headers: { 'X-Token': 'value-5f1c09' } };
    const made = await program.send('POST', '/api/v1/endpoints', { json });
    assert.equal(made.status, 201, made.body);
    const printed = [...program.stdout().matchAll(/_WEBHOOK_SECRET=(whsec_\S+)/g)].map(([, text]) =>
      String(text),
    );
    assert.equal(printed.length, 3);
    const secrets = ['value-5f1c09', String(made.json().secret), ...printed];
    const jwks = await program.send('GET', '/.well-known/jwks.json');
    await program.stop();

    const backup = join(folder, 'copy.db');
    const { code, stderr } = await runCommand(['backup', backup], { COMITY_DATA: data, ...env });
    assert.equal(code, 0, stderr);
    const stored = readdirSync(data).filter((name) => name !== 'secret.key');
    const files = [backup, ...stored.map((name) => join(data, name))].map((path) => readFileSync(path));
    for (const file of files) {
      for (const secret of secrets) assert.ok(!file.includes(secret));
      // A private key in JWK form has a member d.
      assert.ok(!file.includes('"d":"') && !file.includes('PRIVATE KEY'));
    }
    assert.ok(files.some((file) => file.includes('"sealed":{"key":"')));

    const again = await startServer({ folder: data, env });
    assert.equal((await again.send('GET', '/.well-known/jwks.json')).body, jwks.body);
    assert.doesNotMatch(again.stdout(), /whsec_/);
    await again.stop();
  });
}
