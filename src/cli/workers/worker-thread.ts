/**
 * A worker: the whole program on a port that it shares with others. It reads the configuration itself, because functions cannot be sent to
 * a thread, and refuses one that has changed since the supervisor read it.
 */
import { parentPort, workerData } from 'node:worker_threads';
import type { ComposeOptions, Shared } from '../../compose.ts';
import { fingerprintText } from '../../config/configuration.ts';
import { createLog } from '../../observe/log.ts';
import { createMetrics } from '../../observe/metrics.ts';
import { fanOut } from '../../observe/observation.ts';
import { compose, type Running } from '../../running.ts';
import { CommandFailure, exitCodeOf, exitCodes, failureText } from '../failure.ts';
import { type Reading, readConfiguration } from '../read-configuration.ts';
import { giveBackMemorySoon, hearUncaught } from '../serving-process.ts';
import { startFailure } from '../start-failure.ts';
import { Asking, type Message, type WorkerData } from './worker-messages.ts';

async function runWorker(data: WorkerData): Promise<void> {
  const port = parentPort;
  if (port === null) throw new Error('a worker runs only in a worker thread');
  const stop = Promise.withResolvers<Extract<Message, { readonly kind: 'stop' }>>();
  const metrics = createMetrics({ process: true, worker: data.number });
  const hear = (message: Message): void => {
    if (message.kind === 'stop') stop.resolve(message);
  };
  const answers = {
    ownMetrics: () => metrics.render(),
    ownActivity: () => metrics.activity(),
    turns: () => true as const,
  };
  const supervisor = new Asking(port, answers, hear);
  const reading = await read(supervisor, data);
  if (reading === undefined) return;
  const observe = fanOut(
    createLog({ level: reading.settings.logLevel, worker: data.number }),
    metrics.observe,
  );
  const uncaught = hearUncaught(observe);
  const running = await start(supervisor, reading, {
    observe,
    metrics: {
      ...metrics,
      render: () => supervisor.ask('metrics', undefined),
      activity: () => supervisor.ask('activity', undefined),
    },
    shared: sharedOf(data, supervisor),
  });
  if (running === undefined) return;
  const { url, tlsUrl, adminKey, madeSecrets } = running;
  supervisor.tell({ kind: 'ready', started: { url, tlsUrl, adminKey, madeSecrets } });
  giveBackMemorySoon();
  const ending = uncaught.first.then(({ error }) =>
    supervisor.tell({ kind: 'ending', message: error instanceof Error ? error.message : String(error) }),
  );
  const asked = await Promise.race([stop.promise, ending]);
  await running.stop(asked?.reason ?? 'uncaught error', asked?.delayMs);
  process.exit(asked === undefined ? exitCodes.uncaught : exitCodes.done);
}

/** Ids of the workers of one process begin alike. */
function familyOf(id: string): string {
  return id.slice(0, id.indexOf('.'));
}

function sharedOf({ home, processId, startedAt, port, tlsPort }: WorkerData, supervisor: Asking): Shared {
  const worker = {
    ...{ id: processId, startedAt },
    hasEnded: async (other: string) =>
      familyOf(other) === familyOf(processId) && (await supervisor.ask('hasEnded', other)),
  };
  const ports = { port, tlsPort, worker };
  if (home === undefined) return ports;
  return {
    ...ports,
    membership: {
      ...{ data: home, shared: true, processId },
      join: (joined) => supervisor.tell({ kind: 'join', port: joined }, [joined]),
      hasEnded: (other) => supervisor.ask('hasEnded', other),
      tally: (tallies) => supervisor.ask('tally', tallies),
    },
  };
}

async function read(supervisor: Asking, data: WorkerData): Promise<Reading | undefined> {
  try {
    const reading = await readConfiguration(data.environment, data.written);
    if (fingerprintText(reading.configuration, reading.settings) !== data.fingerprint) {
      throw new CommandFailure('the configuration has changed since Comity started: restart Comity');
    }
    const { memoryBytesMax } = data;
    return { ...reading, settings: { ...reading.settings, memoryBytesMax } };
  } catch (error) {
    fail(supervisor, error);
    return undefined;
  }
}

type Wiring = Pick<ComposeOptions, 'observe' | 'metrics' | 'shared'>;

async function start(supervisor: Asking, reading: Reading, wiring: Wiring): Promise<Running | undefined> {
  try {
    return await compose({ ...reading, ...wiring });
  } catch (error) {
    fail(supervisor, startFailure(error, reading.settings));
    return undefined;
  }
}

/** The thread then ends, since nothing is left to do in it. */
function fail(supervisor: Asking, error: unknown): void {
  const message = failureText(error, false).replaceAll('comity: ', '');
  supervisor.tell({ kind: 'failed', message, exitCode: exitCodeOf(error) });
  parentPort?.close();
}

await runWorker(workerData as WorkerData);
