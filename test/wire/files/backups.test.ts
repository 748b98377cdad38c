/** Backups with files, on both stores: what a backup keeps beside it, what a restore brings where, and what either refuses. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { copyFile, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { type Outcome, runCommand, spawnCommand } from '../../harness/command-line.ts';
import { describeOnEachStore } from '../../harness/engine-names.ts';
import { databaseOfProgram } from '../../harness/program-database.ts';
import { serverOfFile, startServer } from '../../harness/running-server.ts';
import { startS3Double } from '../../harness/s3-double.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';
import { eventually, until } from '../../harness/until.ts';

const config = fileURLToPath(new URL('./fixtures/files.config.ts', import.meta.url));
const plain = { 'Content-Type': 'text/plain' };
const names = async (folder: string): Promise<readonly string[]> =>
  existsSync(folder)
    ? (await readdir(folder, { recursive: true })).filter((name) => name.includes('file_')).sort()
    : [];

describeOnEachStore('backups of files', async (engine) => {
  const url = engine === 'PostgreSQL' ? (await databaseOfProgram(config)).url : undefined;
  const data = temporaryFolder();
  const place = join(data, 'files');
  const ofStore: Record<string, string> = url === undefined ? {} : { COMITY_DATABASE_URL: url };
  const source = { COMITY_DATA: data, ...ofStore, COMITY_FILES_URL: pathToFileURL(place).href };
  const server = await serverOfFile({ config, folder: data, env: source });
  const { send } = server;
  const ticket = async (octets: string): Promise<string> => {
    const { id } = (await send('POST', 'tickets', { json: { title: 'a' }, expect: 201 })).json();
    await send('PUT', `tickets/${id}/attachment`, { body: octets, headers: plain, expect: 201 });
    return id;
  };
  const contents = ['one', 'two', 'three'];
  const ids = await Promise.all(contents.map(ticket));

  /** A place of its own for each copy. */
  let copies = 0;
  const emptyCopy = () => {
    copies += 1;
    const folder = join(temporaryFolder(), 'data');
    const files = join(folder, 'files');
    const schema = url === undefined ? {} : { COMITY_DATABASE_SCHEMA: `copy${copies}` };
    const filesUrl = { COMITY_FILES_URL: pathToFileURL(files).href };
    return {
      folder,
      files,
      env: { COMITY_CONFIG: config, COMITY_DATA: folder, ...ofStore, ...schema, ...filesUrl },
    };
  };
  const backUp = async (...flags: string[]): Promise<string> => {
    const file = join(temporaryFolder(), 'copy.db');
    const { code, stderr } = await runCommand(['backup', file, ...flags], source);
    assert.equal(code, 0, stderr);
    return file;
  };
  const restore = (file: string, env: Record<string, string>, ...flags: string[]): Promise<Outcome> =>
    runCommand(['restore', file, ...flags], env);
  const assertServed = async (folder: string, env: Record<string, string>): Promise<void> => {
    await copyFile(join(data, 'secret.key'), join(folder, 'secret.key'));
    const copy = await startServer({ config, folder, env });
    try {
      for (const [at, id] of ids.entries())
        await copy.send('GET', `tickets/${id}/attachment`, {
          expect: { status: 200, body: contents[at] ?? '' },
        });
    } finally {
      await copy.stop();
    }
  };

  test('a backup holds the octets by hard links, and a restored store serves them', async () => {
    const file = await backUp();
    const kept = await names(`${file}.files`);
    assert.deepEqual(kept, await names(place));
    assert.equal(statSync(join(`${file}.files`, kept[0] ?? '')).nlink > 1, true);
    const { folder, files, env } = emptyCopy();
    const { code, stdout, stderr } = await restore(file, env);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /holds its files \(3 files, 11 bytes\)/);
    assert.deepEqual(await names(files), kept);
    await assertServed(folder, env);
  });

  test('a restore continues with the octets that an interrupted one brought', async () => {
    const file = await backUp();
    const { folder, files, env } = emptyCopy();
    const [first = ''] = await names(`${file}.files`);
    const held = join(`${file}.files`, first);
    const aside = join(temporaryFolder(), 'aside');
    await copyFile(held, aside);
    await rm(held);
    const refused = await restore(file, env);
    assert.deepEqual([refused.code, /1 of the files are missing or damaged/.test(refused.stderr)], [4, true]);
    await copyFile(aside, held);
    const { code, stdout, stderr } = await restore(file, env);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /3 files, 11 bytes, 2 were there/);
    assert.equal((await names(files)).length, 3);
    await assertServed(folder, env);
  });

  test('damaged octets of a backup are refused by name, or left out on request', async () => {
    const file = await backUp();
    const [first = ''] = await names(`${file}.files`);
    const path = join(`${file}.files`, first);
    const { size } = statSync(path);
    // A hard link is the file of the store.
    await rm(path);
    await writeFile(path, 'x'.repeat(size));
    const { env, files } = emptyCopy();
    const refused = await restore(file, env);
    assert.equal(refused.code, 4);
    assert.match(refused.stderr, /file_\w+ \(damaged\); --lost-files/);
    const { code, stderr } = await restore(file, env, '--lost-files');
    assert.equal(code, 0, stderr);
    assert.match(stderr, /the file file_\w+ is damaged/);
    assert.equal((await names(files)).length, 2);
  });

  test('a copy beside the store never shares its place, and a successor may', async () => {
    const file = await backUp();
    const { env } = emptyCopy();
    const same = { ...env, COMITY_FILES_URL: source.COMITY_FILES_URL };
    const refused = await restore(file, same);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /what one of them removes the other would lose: name another place/);
    const { code, stdout, stderr } = await restore(file, same, '--no-hold-deliveries');
    assert.equal(code, 0, stderr);
    assert.match(stdout, /3 were there/);
  });

  test('without octets only a successor in the same place can be restored', async () => {
    const file = await backUp('--no-files');
    assert.equal(existsSync(`${file}.files`), false);
    const other = emptyCopy();
    const refused = await restore(file, other.env);
    assert.deepEqual([refused.code, /its folder .* is missing/.test(refused.stderr)], [1, true]);
    const elsewhere = await restore(file, other.env, '--no-hold-deliveries');
    assert.deepEqual([elsewhere.code, /3 of the files are missing/.test(elsewhere.stderr)], [4, true]);
    const same = { ...emptyCopy().env, COMITY_FILES_URL: source.COMITY_FILES_URL };
    assert.equal((await restore(file, same, '--no-hold-deliveries')).code, 0);
  });

  test('octets go from a backup into a bucket, and from there into a backup', async (t) => {
    const double = await startS3Double();
    t.after(() => double.close());
    const { folder, env } = emptyCopy();
    const bucket = {
      ...env,
      COMITY_FILES_URL: double.filesUrl(),
      COMITY_FILES_S3_ACCESS_KEY: double.credential.accessKey,
      COMITY_FILES_S3_SECRET_KEY: double.credential.secretKey,
    };
    const { code, stderr } = await restore(await backUp(), bucket);
    assert.equal(code, 0, stderr);
    assert.equal(double.objects.size, 3);
    await assertServed(folder, bucket);
    const again = join(temporaryFolder(), 'again.db');
    const copied = await runCommand(['backup', again, '--json'], bucket);
    assert.equal(copied.code, 0, copied.stderr);
    const { files, fileBytes } = JSON.parse(copied.stdout);
    assert.deepEqual([files, fileBytes], [3, 11]);
    assert.deepEqual(await names(`${again}.files`), await names(place));
  });

  test('a restore and a backup that were killed are continued', async (t) => {
    const double = await startS3Double();
    t.after(() => double.close());
    const { env } = emptyCopy();
    const bucket = {
      ...env,
      COMITY_FILES_URL: double.filesUrl(),
      COMITY_FILES_S3_ACCESS_KEY: double.credential.accessKey,
      COMITY_FILES_S3_SECRET_KEY: double.credential.secretKey,
    };
    let stalls: 'PUT' | 'GET' | undefined = 'PUT';
    let reads = 0;
    double.fault('stall-answer', {
      on: ({ method, key }) => {
        if (method !== stalls || !key.includes('file_')) return false;
        reads += 1;
        return method === 'PUT' ? double.objects.size >= 1 : reads > 1;
      },
      times: 100,
    });
    const killed = async (args: readonly string[], isUnderWay: () => boolean): Promise<void> => {
      const command = spawnCommand(args, bucket);
      await until(isUnderWay, 'one file is there');
      command.process.kill('SIGKILL');
      await command.ended;
      stalls = undefined;
    };
    const file = await backUp();
    await killed(['restore', file], () => double.objects.size === 1);
    const restored = await restore(file, bucket);
    assert.equal(restored.code, 0, restored.stderr);
    assert.match(restored.stdout, /3 files, 11 bytes, 1 were there/);
    const again = join(temporaryFolder(), 'again.db');
    reads = 0;
    stalls = 'GET';
    const kept = (): number =>
      existsSync(`${again}.files`)
        ? readdirSync(`${again}.files`, { recursive: true }).filter((name) =>
            /^\w\w\/file_/.test(String(name)),
          ).length
        : 0;
    await killed(['backup', again], () => kept() === 1);
    assert.equal(existsSync(again), false);
    const made = await runCommand(['backup', again], bucket);
    assert.equal(made.code, 0, made.stderr);
    assert.match(made.stdout, /3 files, 11 bytes, 1 were there/);
  });

  test('a server makes, lists and deletes a backup with its files', async () => {
    const accepted = await send('POST', 'meta/backups', { expect: 202 });
    const end = await eventually(async () => {
      const answer = await send('GET', String(accepted.headers.location));
      return answer.status === 200 && answer.json().status === 'pending' ? undefined : answer;
    }, 'the end of the backup');
    assert.equal(end.status, 303, end.body);
    const made = (await send('GET', String(end.headers.location), { expect: 200 })).json();
    assert.deepEqual([made.files, made.fileBytes], [3, 11]);
    const path = join(data, 'backups', made.file);
    assert.equal((await names(`${path}.files`)).length, 3);
    assert.equal((await restore(path, emptyCopy().env)).code, 0);
    await send('DELETE', `meta/backups/${made.id}`, { expect: 204 });
    assert.deepEqual(await readdir(join(data, 'backups')), []);
  });

  test('a backup names the octets that its store has lost', async () => {
    const id = await ticket('lost');
    const { attachment } = (await send('GET', `tickets/${id}`, { expect: 200 })).json();
    for (const name of await names(place)) if (name.includes(attachment.id)) await rm(join(place, name));
    const file = join(temporaryFolder(), 'copy.db');
    const refused = await runCommand(['backup', file], source);
    assert.equal(refused.code, 4);
    assert.match(refused.stderr, new RegExp(`a file are missing or damaged, such as ${attachment.id}`));
    assert.equal(existsSync(file), false);
    const made = await runCommand(['backup', file, '--lost-files'], source);
    assert.equal(made.code, 0, made.stderr);
    assert.match(made.stderr, new RegExp(`the file ${attachment.id} is missing`));
    await send('DELETE', `tickets/${id}/attachment`, { expect: 204 });
  });
});
