/** Whether a schema as it was found may be touched by this program and this user at all; what it lacks is plan.ts's to say. */
import { quoteName } from '../../quote-name.ts';
import { SchemaTooNew, UnfitServer } from './failure.ts';
import type { Found } from './inspect.ts';
import type { Layout } from './layout.ts';
import { schemaNumber } from './migrations.ts';
import { occupiedNames } from './plan.ts';

/** Whether the store was never made in this schema. */
export function isFresh(found: Found): boolean {
  return !found.tables.has('comity_migrations');
}

/**
 * @param user who asks, for the remedy
 * @throws UnfitServer, SchemaTooNew
 */
export function checkFitness(found: Found, schema: string, layouts: readonly Layout[], user: string): void {
  const quoted = quoteName(schema);
  const asked = quoteName(user);
  if (found.schemaExists && !found.mayUse) {
    throw lacking(user, `USAGE on the schema ${schema}`, `GRANT USAGE ON SCHEMA ${quoted} TO ${asked}`);
  }
  if (isFresh(found)) {
    checkRoom(found, schema, layouts, user);
    return;
  }
  const newest = Math.max(0, ...found.migrations);
  if (newest > schemaNumber) throw new SchemaTooNew(schema, newest, schemaNumber);
  for (const [name, { rightsMissing }] of found.tables) {
    if (rightsMissing.length === 0) continue;
    if (!name.startsWith('comity_') && !layouts.some(({ table }) => table.name === name)) continue;
    const all = `GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${quoted} TO ${asked}`;
    throw lacking(user, `${rightsMissing.join(', ')} on the table ${schema}.${name}`, all);
  }
  refuseOccupied(occupiedNames(found, layouts), schema);
}

/** Before the first making: nothing may stand under the names that are to be made, and the user must be allowed to. */
function checkRoom(found: Found, schema: string, layouts: readonly Layout[], user: string): void {
  const names = [...found.tables.keys(), ...found.others];
  const own = names.filter((name) => name.startsWith('comity_'));
  refuseOccupied([...own, ...occupiedNames(found, layouts)], schema);
  if (found.mayCreate) return;
  if (found.schemaExists) {
    const grant = `GRANT CREATE ON SCHEMA ${quoteName(schema)} TO ${quoteName(user)}`;
    throw lacking(user, `CREATE on the schema ${schema}`, grant);
  }
  const make = `CREATE SCHEMA ${quoteName(schema)} AUTHORIZATION ${quoteName(user)}`;
  throw lacking(user, `CREATE on the database, to make the schema ${schema}`, make);
}

function refuseOccupied(names: readonly string[], schema: string): void {
  const [name] = names;
  if (name === undefined) return;
  throw new UnfitServer(
    'occupied',
    `the schema ${schema} has a "${name}" that this program did not make; give it a schema of its own with COMITY_DATABASE_SCHEMA`,
  );
}

function lacking(user: string, right: string, remedy: string): UnfitServer {
  return new UnfitServer('rights', `the user ${user} lacks the right ${right}; as its owner run: ${remedy}`);
}
