/** Whether a schema holds a store that this program can read; for what reads it without serving it. */
import { addressOf, describe } from './connection/address.ts';
import { SchemaTooNew } from './schema/failure.ts';
import { inspectSchema } from './schema/inspect.ts';
import { schemaNumber } from './schema/migrations.ts';
import { openSession } from './schema/session.ts';

/** Thrown where no store was ever made. */
export class NoStore extends Error {
  override readonly name = 'NoStore';
  readonly code = 'store_missing';
}

export type StorePlace = {
  readonly url: string;
  readonly schema: string;
  readonly connectTimeoutMs: number;
};

/** @throws NoStore, SchemaTooNew, DatabaseFailed, TypeError (a URL that cannot be read) */
export async function findStore({ url, schema, connectTimeoutMs }: StorePlace): Promise<void> {
  const address = addressOf(url);
  const session = await openSession(address, 'comity backup', connectTimeoutMs);
  try {
    const { migrations } = await inspectSchema(session, schema);
    const number = Math.max(0, ...migrations);
    if (number === 0)
      throw new NoStore(`there is no store in the schema "${schema}" of ${describe(address)}`);
    if (number > schemaNumber) throw new SchemaTooNew(schema, number, schemaNumber);
  } finally {
    await session.end();
  }
}
