/** Runs of migrations that are killed, that are two at once, and beside servers of the old configuration: what must hold at their end. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { spawnCommand } from '../harness/command-line.ts';
import { startServer } from '../harness/running-server.ts';
import type { Project } from './migrated-project.ts';

const access = `access: { read: 'public', create: 'public', update: 'public', delete: 'public' }`;
const before = `{ collections: { notes: collection({ ${access}, schema: Type.Object({ name: Type.String() }) }) } }`;
/** `times` counts how often `up` got a document, which takes a millisecond so that a kill comes between. */
const after = `{ collections: { notes: collection({ ${access}, indexes: ['title'],
  schema: Type.Object({ title: Type.String(), times: Type.Integer() }) }) },
  migrations: [{ id: 'titles', collection: 'notes', up({ name, title, times = 0, ...rest }) {
    for (const end = performance.now() + 1; performance.now() < end; );
    return { ...rest, title: title ?? name, times: times + 1 };
  } }] }`;

const dying = after.replace('for (const end', `process.kill(process.pid, 'SIGKILL'); for (const end`);

async function prepare(project: Project, documents: number) {
  const [old, young] = [project.configure('before', before), project.configure('after', after)];
  const names = Array.from({ length: documents }, (_, index) => `note ${index}`);
  await project.seed(
    old,
    'notes',
    names.map((name) => ({ name })),
  );
  const env = { ...project.environment(young), COMITY_MIGRATION_BATCH_DOCUMENTS_MAX: '20' };
  const spawn = () => spawnCommand(['migrate', '--yes'], env);
  return { old, young, names, spawn };
}

async function everyDocumentOnce(project: Project, config: string, names: readonly string[]): Promise<void> {
  const documents = await project.documents(config, 'notes');
  assert.deepEqual(documents.map(({ title }) => title).sort(), [...names].sort());
  assert.ok(documents.every(({ times, name }) => times === 1 && name === undefined));
}

/** Kills the run at a random moment, again and again, until one ends. */
export async function killRuns(project: Project, kills: number): Promise<void> {
  const { young, names, spawn } = await prepare(project, 60 * (kills + 2));
  await killed(spawn, kills);
  await everyDocumentOnce(project, young, names);
}

/** The same for date-times that are not kept in UTC yet, which no declared migration changes. */
export async function killRespelling(project: Project, kills: number): Promise<void> {
  const of = (schema: string) =>
    `{ collections: { notes: collection({ ${access}, schema: Type.Object({ at: Type.String(${schema}) }) }) } }`;
  const [old, young] = [
    project.configure('texts', of('')),
    project.configure('instants', of("{ format: 'date-time' }")),
  ];
  const hours = Array.from({ length: 60 * (kills + 2) }, (_, index) => Date.UTC(2026, 0, 1, index));
  const local = (ms: number): string => new Date(ms + 3_600_000).toISOString().replace('Z', '00+01:00');
  await project.seed(
    old,
    'notes',
    hours.map((ms) => ({ at: local(ms) })),
  );
  const env = { ...project.environment(young), COMITY_MIGRATION_BATCH_DOCUMENTS_MAX: '5' };
  await killed(() => spawnCommand(['migrate', '--yes'], env), kills);
  const documents = await project.documents(young, 'notes');
  const kept = hours.map((ms) => new Date(ms).toISOString().replace('Z', '00Z'));
  assert.deepEqual(documents.map(({ at }) => at).sort(), kept);
}

/** Three deaths of a batch that ends its process are all: a start refuses then, and `comity migrate` tries again. */
export async function endProcesses(project: Project): Promise<void> {
  const { old, young, names } = await prepare(project, 30);
  const deadly = project.configure('deadly', dying);
  const serve = () => spawnCommand(['serve', '--migrate'], project.environment(deadly)).ended;
  for (let deaths = 1; deaths <= 3; deaths += 1) {
    const { code } = await serve();
    assert.ok(code !== 5 && code !== 0, `death ${deaths} ended with ${code}`);
  }
  const refused = await serve();
  assert.equal(refused.code, 5, refused.stderr);
  assert.match(
    refused.stderr,
    /^comity: notes: the program ended 3 times while it ran titles at the first documents; .* and run "comity migrate", which tries again$/m,
  );
  assert.equal((await project.documents(old, 'notes')).length, names.length);
  const tried = await project.run(young, 'migrate', '--yes');
  assert.equal(tried.code, 0, tried.stderr);
  await everyDocumentOnce(project, young, names);
}

async function killed(spawn: () => ReturnType<typeof spawnCommand>, kills: number): Promise<void> {
  for (let round = 0; round < kills; round += 1) {
    const { process: child, ended } = spawn();
    // A run that ends before its kill must leave no timer open.
    await Promise.race([pause(200 + Math.random() * 2000, undefined, { ref: false }), ended]);
    child.kill('SIGKILL');
    await ended;
  }
  const { code, stderr } = await spawn().ended;
  assert.equal(code, 0, stderr);
}

export async function runTwoAtOnce(project: Project): Promise<void> {
  const { young, names, spawn } = await prepare(project, 400);
  const both = await Promise.all([spawn().ended, spawn().ended]);
  assert.deepEqual(
    both.map(({ code }) => code),
    [0, 0],
    both.map(({ stderr }) => stderr).join(),
  );
  await everyDocumentOnce(project, young, names);
}

/** On PostgreSQL: the old server keeps writing; what it acknowledged is there, in the new shape. */
export async function runBesideWriters(project: Project): Promise<void> {
  const { old, young, names, spawn } = await prepare(project, 400);
  const server = await startServer({
    folder: join(project.folder, 'data'),
    env: { ...project.environment(old), COMITY_DEVELOPMENT: 'off', COMITY_RATE_LIMIT_WRITES: '0' },
  });
  const acknowledged = new Map(
    (await project.documents(old, 'notes')).map(({ id, name }) => [String(id), String(name)]),
  );
  const ids = [...acknowledged.keys()];
  const migrating = spawn();
  let isOver = false;
  // One writer, so that the last acknowledgement of a note is known.
  const write = async (): Promise<void> => {
    for (let round = 0; !isOver; round += 1) {
      const name = `round ${round}`;
      const id = ids[(7 * round) % ids.length] ?? '';
      const isNew = round % 3 === 0;
      const { status, json } = isNew
        ? await server.send('POST', '/api/v1/notes', { json: { name } })
        : await server.send('PATCH', `/api/v1/notes/${id}`, { json: { name } });
      assert.ok([200, 201, 422].includes(status), String(status));
      if (status === 201) acknowledged.set((json() as { id: string }).id, name);
      if (status === 200) acknowledged.set(id, name);
      await pause(2);
    }
  };
  const writing = write();
  const { code, stderr } = await migrating.ended;
  isOver = true;
  await writing;
  await server.stop();
  assert.equal(code, 0, stderr);
  assert.ok(acknowledged.size > names.length, 'nothing was written meanwhile');
  // What the old server wrote behind the final pass is found by the next run.
  const again = await project.run(young, 'migrate', '--yes');
  assert.equal(again.code, 0, again.stderr);
  const documents = await project.documents(young, 'notes');
  assert.ok(documents.every(({ name }) => name === undefined));
  assert.deepEqual(new Map(documents.map(({ id, title }) => [id, title])), acknowledged);
}
