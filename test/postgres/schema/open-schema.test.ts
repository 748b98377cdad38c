/** What a start does with a schema: makes a fresh one, takes one that is up to date, refuses every other with its reason. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addressOf } from '../../../src/store/postgres/connection/address.ts';
import {
  DatabaseFailed,
  SchemaBusy,
  SchemaOutdated,
  SchemaTooNew,
  UnfitServer,
} from '../../../src/store/postgres/postgres-failure.ts';
import { inspectSchema } from '../../../src/store/postgres/schema/inspect.ts';
import { applyStep } from '../../../src/store/postgres/schema/migrate.ts';
import { openSchema } from '../../../src/store/postgres/schema/open-schema.ts';
import { layoutsOf } from '../../../src/store/postgres/schema/schema-layout.ts';
import { migrations, planSteps, schemaNumber } from '../../../src/store/postgres/schema/schema-plan.ts';
import { lockSchema, openSession, type Session } from '../../../src/store/postgres/schema/session.ts';
import { categories, fields, tables } from '../../contract/fixture.ts';
import { emptyDatabase } from '../../harness/postgres-database.ts';
import { Wire } from '../connection/wire.ts';
import { asUser, makeSchema, openOptions, testDatabase, withCategories } from './database.ts';

const database = await testDatabase();
const { address, client, url } = database;

/** A login of the server, gone when the test is over. */
async function userFor(
  context: { after: (end: () => Promise<void>) => void },
  name: string,
): Promise<string> {
  const role = `${name}_${process.pid}`;
  await client.query(`CREATE ROLE ${role} LOGIN PASSWORD 'pw'`);
  context.after(async () => {
    await client.query(`DROP OWNED BY ${role} CASCADE; DROP ROLE ${role}`);
  });
  return role;
}

function unfit(unfitness: UnfitServer['unfitness'], ...words: readonly string[]) {
  return (error: unknown): boolean => {
    assert.ok(error instanceof UnfitServer, String(error));
    assert.equal(error.unfitness, unfitness);
    for (const word of words) assert.ok(error.message.includes(word), error.message);
    return true;
  };
}

async function lacking(schema: string, missing: readonly string[], declared = tables): Promise<void> {
  await assert.rejects(openSchema(address, openOptions(schema, { tables: declared })), (error) => {
    assert.ok(error instanceof SchemaOutdated, String(error));
    assert.deepEqual(error.missing, missing);
    return true;
  });
}

test('makes a fresh schema and numbers its tables', async () => {
  const observed = await makeSchema(database, 'fresh');
  assert.deepEqual(
    observed.map((fact) => fact.kind === 'store-migrated' && fact.what),
    ['schema fresh'],
  );
  const { numbers } = await openSchema(address, openOptions('fresh'));
  assert.deepEqual(
    [...numbers],
    [
      ['things', 1],
      ['categories', 2],
      ['events', 3],
    ],
  );
  const { rows } = await client.query(
    'SELECT number, name, made_at, program FROM fresh.comity_migrations ORDER BY 1',
  );
  assert.deepEqual(
    rows,
    migrations.map(({ number, name }) => ({ number, name, made_at: '1', program: 'test' })),
  );
});

test('passes a schema that is up to date without touching it', async () => {
  await makeSchema(database, 'again');
  assert.deepEqual(await makeSchema(database, 'again'), []);
});

test('makes one schema when five processes start together, and all agree on it', async () => {
  let made = 0;
  const observe = (): void => {
    made += 1;
  };
  const starts = Array.from({ length: 5 }, () => openSchema(address, openOptions('together', { observe })));
  const opened = await Promise.all(starts);
  assert.equal(made, 1);
  for (const { numbers } of opened) assert.deepEqual(numbers, opened[0]?.numbers);
});

test('takes a schema that has tables and indexes of another declaration besides', async () => {
  await makeSchema(database, 'wider');
  const { numbers } = await openSchema(
    address,
    openOptions('wider', { tables: [{ ...categories, indexes: [] }] }),
  );
  assert.equal(numbers.get('things'), 1);
});

test('makes its tables in an empty schema that the owner made for a user without rights on the database', async (context) => {
  const user = await userFor(context, 'tenant');
  await client.query(`CREATE SCHEMA tenancy AUTHORIZATION ${user}`);
  const { numbers } = await openSchema(addressOf(asUser(url, user, 'pw')), openOptions('tenancy'));
  assert.equal(numbers.size, 3);
});

test('serves a user who owns nothing but was granted the rows', async (context) => {
  const user = await userFor(context, 'granted');
  await makeSchema(database, 'granted');
  await client.query(`GRANT USAGE ON SCHEMA granted TO ${user};
    GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA granted TO ${user}`);
  const { numbers } = await openSchema(addressOf(asUser(url, user, 'pw')), openOptions('granted'));
  assert.equal(numbers.size, 3);
});

test('refuses a schema that lacks a table, a search column, an index or an index of another form', async () => {
  await makeSchema(database, 'older');
  await lacking('older', ['table more'], [...tables, { ...categories, name: 'more', references: [] }]);
  await lacking('older', ['search text of categories'], withCategories({ searched: true }));
  await lacking(
    'older',
    ['index categories.unique["parentId"]'],
    withCategories({ unique: [[fields.name], [fields.parentId]] }),
  );
  const renamed = { ...fields.parentId, name: 'name', path: ['title'] };
  await lacking(
    'older',
    ['index categories.unique["name"]', 'index categories.unique["name"] replaced by its new form'],
    withCategories({ unique: [[renamed]] }),
  );
});

test('refuses a schema whose index was never built to its end', async () => {
  await makeSchema(database, 'half');
  await client.query(
    `UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'half."things.index[""price""]"'::regclass`,
  );
  await lacking('half', ['index things.index["price"]']);
});

test('names three missing things and counts the rest in one line', async () => {
  await makeSchema(database, 'much', []);
  await assert.rejects(openSchema(address, openOptions('much')), (error) => {
    assert.ok(error instanceof SchemaOutdated);
    assert.equal(
      error.message,
      'the schema "much" lacks what the configuration declares: table things, table categories',
    );
    return true;
  });
  const many = ['a', 'b', 'c', 'd', 'e'].map((name) => ({ ...categories, name, references: [] }));
  await assert.rejects(openSchema(address, openOptions('much', { tables: many })), {
    message: 'the schema "much" lacks what the configuration declares: table a, table b, table c and 2 more',
  });
});

test('refuses a schema that a newer program migrated', async () => {
  await makeSchema(database, 'newer');
  await client.query(`INSERT INTO newer.comity_migrations VALUES (99, 'later', 1, 'next')`);
  await assert.rejects(openSchema(address, openOptions('newer')), (error) => {
    assert.ok(error instanceof SchemaTooNew, String(error));
    assert.ok(error.message.includes(`schema 99; this version supports up to ${schemaNumber}`));
    return true;
  });
});

test('refuses a schema in which another program has a table of that name, and changes nothing', async () => {
  await client.query('CREATE SCHEMA foreign_one; CREATE TABLE foreign_one.things (id int)');
  await assert.rejects(
    openSchema(address, openOptions('foreign_one')),
    unfit('occupied', 'foreign_one', '"things"'),
  );
  await client.query('CREATE SCHEMA foreign_two; CREATE VIEW foreign_two.comity_counters AS SELECT 1');
  await assert.rejects(
    openSchema(address, openOptions('foreign_two')),
    unfit('occupied', '"comity_counters"'),
  );
  const { rows } = await client.query(
    `SELECT relname FROM pg_class WHERE relnamespace = 'foreign_one'::regnamespace`,
  );
  assert.deepEqual(rows, [{ relname: 'things' }]);
});

test('refuses a user without rights, naming the right and the statement that grants it', async (context) => {
  const user = await userFor(context, 'poor');
  const own = addressOf(asUser(url, user, 'pw'));
  await assert.rejects(
    openSchema(own, openOptions('absent')),
    unfit('rights', user, 'CREATE on the database', `CREATE SCHEMA "absent" AUTHORIZATION "${user}"`),
  );
  await client.query('CREATE SCHEMA closed');
  await assert.rejects(
    openSchema(own, openOptions('closed')),
    unfit('rights', 'USAGE', 'GRANT USAGE ON SCHEMA "closed"'),
  );
  await client.query(`GRANT USAGE ON SCHEMA closed TO ${user}`);
  await assert.rejects(
    openSchema(own, openOptions('closed')),
    unfit('rights', 'GRANT CREATE ON SCHEMA "closed"'),
  );
  await makeSchema(database, 'closed');
  await client.query(`GRANT SELECT ON ALL TABLES IN SCHEMA closed TO ${user}`);
  await assert.rejects(
    openSchema(own, openOptions('closed')),
    unfit(
      'rights',
      'INSERT, UPDATE, DELETE on the table closed.',
      'GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES',
    ),
  );
});

test('refuses a database in another encoding than UTF-8', async (context) => {
  const server = await emptyDatabase();
  const name = new URL(server.url).pathname.slice(1);
  await client.query(`DROP DATABASE ${name}`);
  await client.query(`CREATE DATABASE ${name} TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'`);
  context.after(() => server.dispose());
  await assert.rejects(
    openSchema(addressOf(server.url), openOptions('any')),
    unfit('encoding', 'LATIN1', "ENCODING 'UTF8' TEMPLATE template0"),
  );
});

test('refuses a user whose transactions are read-only', async (context) => {
  const user = await userFor(context, 'reader');
  await client.query(`ALTER ROLE ${user} SET default_transaction_read_only = on`);
  await assert.rejects(
    openSchema(addressOf(asUser(url, user, 'pw')), openOptions('any')),
    unfit('read-only', user, 'default_transaction_read_only'),
  );
});

test('waits while another process migrates, and then takes what it made', async () => {
  await makeSchema(database, 'moving', []);
  const holder = await lockHolder('moving');
  const opening = openSchema(address, openOptions('moving'));
  // One that has no time to wait shows that the lock is what keeps the other from being refused at once.
  await assert.rejects(
    openSchema(address, openOptions('moving', { waitMs: 0 })),
    (error) => error instanceof SchemaOutdated,
  );
  const plan = { schema: 'moving', layouts: layoutsOf(tables, 'moving'), program: 'test', now: 1 };
  for (const step of planSteps(await inspectSchema(holder, 'moving'), plan)) {
    await applyStep(holder, step, 0);
  }
  await holder.end();
  assert.equal((await opening).numbers.size, 3);
});

test('gives up on a server that no longer answers, within the time', async () => {
  const wire = await Wire.before(url);
  const opening = openSchema(addressOf(wire.url), openOptions('silent', { answerTimeoutMs: 200 }));
  await wire.untilAsked(1);
  wire.lossy = true;
  await assert.rejects(opening, (error) => {
    assert.ok(error instanceof DatabaseFailed, String(error));
    assert.equal(error.message, 'no reply within 200 ms');
    return true;
  });
  await wire.close();
});

test('gives up on another process that makes the schema and does not end', async () => {
  const holder = await lockHolder('stuck');
  await assert.rejects(openSchema(address, openOptions('stuck', { waitMs: 300 })), (error) => {
    assert.ok(error instanceof SchemaBusy, String(error));
    return true;
  });
  await holder.end();
});

/** A session that holds the lock of the schema as a migration does. */
async function lockHolder(schema: string): Promise<Session> {
  const session = await openSession(address, 'test', 5000);
  await lockSchema(session, schema, 0, () => assert.fail('nobody else has it'));
  return session;
}
