/** Three workers at one port: over the embedded store, and on PostgreSQL. */

import { emptyDatabase } from '../../harness/postgres-database.ts';
import { spawnServer } from '../../harness/server-process.ts';
import { environment, manySuite, processes, type Service } from './many-suite.ts';

async function startWorkers(env: Readonly<Record<string, string>> = {}): Promise<Service> {
  const program = await spawnServer({ env: { ...environment, COMITY_PROCESSES: String(processes), ...env } });
  const stop = async (): Promise<void> => void (await program.stop());
  return { running: new Array(processes).fill(program), stop };
}

manySuite('three workers over the embedded store', () => startWorkers());

manySuite('three workers on PostgreSQL', async () => {
  const server = await emptyDatabase();
  const service = await startWorkers({ COMITY_DATABASE_URL: server.url });
  const stop = async (): Promise<void> => {
    await service.stop();
    await server.dispose();
  };
  return { ...service, stop };
});
