/**
 * Why a schema cannot be used or brought up to date. Each is told to a person in one line (cli/database-failure.ts), which adds where
 * the database is; none carries an address or a password.
 */

/** The schema lacks what this program declares; `comity migrate` mends it. */
export class SchemaOutdated extends Error {
  override readonly name = 'SchemaOutdated';
  readonly code = 'schema_outdated';
  /** What is missing, in a few words each. */
  readonly missing: readonly string[];

  constructor(schema: string, missing: readonly string[]) {
    super(`the schema "${schema}" lacks what is declared: ${briefly(missing)}`);
    this.missing = missing;
  }
}

/** The schema was made by a newer program, whose tables this one does not know. */
export class SchemaTooNew extends Error {
  override readonly name = 'SchemaTooNew';
  readonly code = 'schema_too_new';

  constructor(schema: string, found: number, known: number) {
    super(
      `the schema "${schema}" was made by a newer version of the program (schema ${found}, this one knows ${known})`,
    );
  }
}

/** What it is about a server that makes it unfit. */
export type Unfitness = 'version' | 'encoding' | 'standby' | 'read-only' | 'rights' | 'occupied' | 'pooler';

/** The server, or this user's rights on it, cannot serve as the store. The message holds the remedy. */
export class UnfitServer extends Error {
  override readonly name = 'UnfitServer';
  readonly code = 'store_unfit_server';
  readonly unfitness: Unfitness;

  constructor(unfitness: Unfitness, message: string) {
    super(message);
    this.unfitness = unfitness;
  }
}

/** Rows already stored stand against what is declared, such as a value that became unique. */
export class UnfitRows extends Error {
  override readonly name = 'UnfitRows';
  readonly code = 'store_unfit_rows';
}

/** Another process migrates the schema, or a transaction holds what a step needs, for longer than this one waits. */
export class SchemaBusy extends Error {
  override readonly name = 'SchemaBusy';
  readonly code = 'schema_busy';
}

/** The connection could not be made or broke, or the server failed a statement: `cause` is its own error, with its code. */
export class DatabaseFailed extends Error {
  override readonly name = 'DatabaseFailed';
  readonly code = 'database_failed';

  constructor(cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause });
  }
}

const namedMax = 3;

function briefly(things: readonly string[]): string {
  const named = things.slice(0, namedMax).join(', ');
  return things.length > namedMax ? `${named} and ${things.length - namedMax} more` : named;
}
