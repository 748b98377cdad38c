/** Comity and its floor with so many keys stored, each in a database of its own. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Place } from '../engine.ts';
import { seedReceivedTable } from '../floor/received/postgres-store.ts';
import { seedReceived } from '../floor/received/store.ts';
import type { Run } from '../measured-run.ts';
import { type ServerProcess, startServer } from '../server-process.ts';
import { senderNames } from './messages.ts';
import { type ReceivingProgram, startReceiving } from './program.ts';
import { countReceived, seededInbox, seedKeys } from './seed.ts';

export type Side = {
  readonly keys: number;
  readonly place: Place;
  readonly program: ReceivingProgram;
  readonly floor: ServerProcess;
};

export async function startSide(run: Run, keys: number): Promise<Side> {
  const place = run.engine.newPlace();
  process.stderr.write(`${run.store}: storing ${keys.toLocaleString('en')} keys\n`);
  await seedKeys(place, keys);
  const floor = await startFloor(run, keys);
  try {
    return { keys, place, floor, program: await startReceiving(run.pinning, place) };
  } catch (error) {
    await floor.stop();
    throw error;
  }
}

export async function stopSide({ program, floor }: Side): Promise<void> {
  await Promise.all([program.stop(), floor.stop()]);
}

/** Stops the program, and throws where what it accepted is not what is stored. */
export async function checkKept({ keys, place, program }: Side): Promise<void> {
  const accepted = new Map<string, number>();
  for (const sender of senderNames) accepted.set(sender, (await program.counted(sender)).accepted);
  await program.stop();
  for (const [sender, count] of accepted) {
    const seeded = sender === 'standard' ? seededInbox(keys) : 0;
    const kept = (await countReceived(place, sender)) - seeded;
    if (kept !== count) throw new Error(`${count} messages of ${sender} were accepted, but ${kept} are kept`);
  }
}

async function startFloor({ pinning, engine }: Run, keys: number): Promise<ServerProcess> {
  const place = engine.newPlace();
  const program = fileURLToPath(new URL(`../floor/received/${place.store}.ts`, import.meta.url));
  if (place.store === 'sqlite') {
    const file = join(place.folder, 'floor.db');
    seedReceived(file, keys);
    return await startServer(pinning, [program, file]);
  }
  await seedReceivedTable(place.url, place.schema, keys);
  return await startServer(pinning, [program, place.url, place.schema]);
}
