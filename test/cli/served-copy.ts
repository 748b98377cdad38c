/** What a copy of a store holds: its resources as a program serves them that has the copy for its store. */
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { type RunningServer, startServer } from '../harness/running-server.ts';
import { temporaryFolder } from '../harness/temporary-folder.ts';

/** @returns the status of the answer */
export async function createCategory(server: RunningServer, name: string): Promise<number> {
  return (await server.send('POST', '/api/v1/categories', { json: { name } })).status;
}

/** @param data folder of the store that was copied, which has the key */
export async function namesServedFrom(data: string, database: string): Promise<readonly string[]> {
  const folder = temporaryFolder();
  copyFileSync(database, join(folder, 'comity.db'));
  copyFileSync(join(data, 'secret.key'), join(folder, 'secret.key'));
  const server = await startServer({ folder });
  const { items } = (await server.send('GET', '/api/v1/categories?limit=1000')).json();
  await server.stop();
  return (items as readonly { name: string }[]).map(({ name }) => name);
}
