/** `comity files check` and `comity files move`, on both stores, with a folder and a bucket. */
import assert from 'node:assert/strict';
import { appendFile, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { type Outcome, runCommand, spawnCommand } from '../../harness/command-line.ts';
import { describeOnEachStore } from '../../harness/engine-names.ts';
import { databaseOfProgram } from '../../harness/program-database.ts';
import { startServer } from '../../harness/running-server.ts';
import { startS3Double } from '../../harness/s3-double.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';
import { until } from '../../harness/until.ts';

const config = fileURLToPath(new URL('./fixtures/files.config.ts', import.meta.url));
const plain = { 'Content-Type': 'text/plain' };

describeOnEachStore('the check and the move of files', async (engine) => {
  const url = engine === 'PostgreSQL' ? (await databaseOfProgram(config)).url : undefined;
  const data = temporaryFolder();
  const place = join(data, 'files');
  const env = {
    ...{ COMITY_CONFIG: config, COMITY_DATA: data, COMITY_FILES_URL: pathToFileURL(place).href },
    ...(url === undefined ? {} : { COMITY_DATABASE_URL: url }),
  };
  const names = async (): Promise<readonly string[]> =>
    (await readdir(place, { recursive: true }))
      .filter((name) => !name.startsWith('incoming') && name.includes('file_'))
      .sort();
  const files: string[] = [];
  const server = await startServer({ config, folder: data, env });
  for (const octets of ['one', 'two', 'three', 'four']) {
    const { id } = (await server.send('POST', 'tickets', { json: { title: 'a' }, expect: 201 })).json();
    const made = await server.send('PUT', `tickets/${id}/attachment`, {
      body: octets,
      headers: plain,
      expect: 201,
    });
    files.push(made.json().id);
  }
  const check = (...flags: string[]): Promise<Outcome> => runCommand(['files', 'check', ...flags], env);
  const reportOf = async (...flags: string[]) => {
    const { code, stdout, stderr } = await check('--json', ...flags);
    assert.ok(stdout !== '', stderr);
    return { code, ...JSON.parse(stdout) };
  };
  const pathOf = async (at: number): Promise<string> => {
    const name = (await names()).find((each) => each.includes(files[at] ?? 'none'));
    return join(place, name ?? 'none');
  };

  test('a sound store is told so while its server runs', async () => {
    const { code, stdout, stderr } = await check();
    assert.deepEqual([code, stderr], [0, '']);
    assert.equal(stdout, '4 files (15 bytes): 0 missing, 0 damaged\n');
  });

  test('a bucket takes over what a killed move left, and names what is damaged', async (t) => {
    const double = await startS3Double();
    t.after(() => double.close());
    const { credential } = double;
    const bucket = {
      COMITY_FILES_S3_ACCESS_KEY: credential.accessKey,
      COMITY_FILES_S3_SECRET_KEY: credential.secretKey,
    };
    const move = ['files', 'move', '--to', double.filesUrl()];
    let stalls = true;
    double.fault('stall-answer', {
      on: ({ method }) => stalls && method === 'PUT' && double.objects.size >= 2,
      times: 100,
    });
    const killed = spawnCommand(move, { ...env, ...bucket });
    await until(() => double.objects.size >= 2, 'two files are there');
    killed.process.kill('SIGKILL');
    await killed.ended;
    stalls = false;
    const before = double.objects.size;
    const moved = await runCommand([...move, '--json'], { ...env, ...bucket });
    assert.equal(moved.code, 0, moved.stderr);
    const { copied, known, damaged } = JSON.parse(moved.stdout);
    assert.deepEqual([copied + known, damaged, known >= before], [4, 0, true]);
    const there = { ...env, ...bucket, COMITY_FILES_URL: double.filesUrl() };
    const checked = await runCommand(['files', 'check'], there);
    assert.deepEqual([checked.code, checked.stdout], [0, '4 files (15 bytes): 0 missing, 0 damaged\n']);
    const same = await runCommand(['files', 'move', '--to', double.filesUrl()], there);
    assert.deepEqual([same.code, /the place where the files are/.test(same.stderr)], [2, true]);
  });

  test('missing and damaged octets, and those without a row, are found; a repair removes the last', async () => {
    await server.stop();
    await rm(await pathOf(0));
    await writeFile(await pathOf(1), 'owt');
    await appendFile(await pathOf(2), '!');
    const kept = await pathOf(3);
    const left = kept
      .replaceAll(files[3] ?? 'none', `file_${'0'.repeat(26)}`)
      .replace(/files\/[^/]+\//, 'files/00/');

    await mkdir(join(place, '00'), { recursive: true });
    await writeFile(left, 'four');
    const found = await reportOf();
    assert.deepEqual(
      [found.code, found.files, found.missing, found.damaged, found.left, found.leftBytes],
      [4, 4, 1, 2, 1, 4],
    );
    const what = Object.fromEntries(
      found.faults.map((each: { id: string; what: string }) => [each.id, each.what]),
    );
    assert.deepEqual(what, {
      [files[0] ?? '']: 'missing',
      [files[1] ?? '']: 'damaged',
      [files[2] ?? '']: 'damaged',
    });
    assert.match(found.faults[0].document, /^tickets\//);
    const { stdout } = await check();
    assert.match(stdout, /^file +octets +document +field\n/);
    assert.match(stdout, /1 files without a row \(4 bytes\): --repair removes them/);
    const repaired = await reportOf('--repair', '--yes');
    assert.deepEqual([repaired.code, repaired.repaired], [4, true]);
    const after = await reportOf();
    assert.deepEqual([after.left, after.missing, after.damaged], [0, 1, 2]);
    assert.equal(await readFile(kept, 'utf8'), 'four');
  });

  test('a repair refuses the place of another store', async () => {
    const folder = temporaryFolder();
    const schema = url === undefined ? {} : { COMITY_DATABASE_SCHEMA: 'other' };
    const other = { ...env, COMITY_DATA: folder, ...schema };
    await (await startServer({ config, folder, env: other })).stop();
    const { code, stderr } = await runCommand(['files', 'check', '--repair', '--yes'], other);
    assert.deepEqual([code, /the store names no file, and .* has 3/.test(stderr)], [1, true]);
    assert.equal((await names()).length, 3);
  });
});
