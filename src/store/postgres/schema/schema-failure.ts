/** Errors of opening and migrating a schema, for one line of the command line; none contains an address or a password. */

/** The schema lacks tables or indexes of the declaration; `comity migrate` adds them. */
export class SchemaOutdated extends Error {
  override readonly name = 'SchemaOutdated';
  readonly code = 'schema_outdated';
  readonly missing: readonly string[];

  constructor(schema: string, missing: readonly string[]) {
    super(`the schema "${schema}" lacks what the configuration declares: ${briefly(missing)}`);
    this.missing = missing;
  }
}

/** The schema was made by a newer version, whose tables this one does not know. */
export class SchemaTooNew extends Error {
  override readonly name = 'SchemaTooNew';
  readonly code = 'schema_too_new';

  constructor(schema: string, found: number, known: number) {
    super(
      `the schema "${schema}" was made by a newer version of Comity (schema ${found}; this version supports up to ${known})`,
    );
  }
}

export type Unfitness = 'version' | 'encoding' | 'standby' | 'read-only' | 'rights' | 'occupied' | 'pooler';

/** The server, or this user's rights on it, cannot serve as the store. The message says what to do. */
export class UnfitServer extends Error {
  override readonly name = 'UnfitServer';
  readonly code = 'store_unfit_server';
  readonly unfitness: Unfitness;

  constructor(unfitness: Unfitness, message: string) {
    super(message);
    this.unfitness = unfitness;
  }
}

/** Another process migrates the schema, or a transaction blocks a step, for longer than the timeout. */
export class SchemaBusy extends Error {
  override readonly name = 'SchemaBusy';
  readonly code = 'schema_busy';
}

/** The connection failed, or the server failed a statement; `cause` is the original error, with its code. */
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
