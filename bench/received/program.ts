/** Comity with its receiver, as the benchmark starts and watches it. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { adminKey, environmentAt, type Place } from '../engine.ts';
import type { Pinning } from '../pin.ts';
import { type ServerProcess, startServer } from '../server-process.ts';
import { secret } from '../webhooks/sent-events.ts';
import { senderNames } from './messages.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const processedPollMs = 20;
const processedMsMax = 60_000;

/** Of one sender, since the start. */
export type Counted = { readonly accepted: number; readonly duplicate: number; readonly processed: number };

export type ReceivingProgram = {
  readonly server: ServerProcess;
  counted(sender: string): Promise<Counted>;
  /** Waits until so many of a sender's messages are processed. */
  awaitProcessed(sender: string, count: number): Promise<void>;
  stop(): Promise<void>;
};

export async function startReceiving(pinning: Pinning, place: Place): Promise<ReceivingProgram> {
  const server = await startServer(pinning, [join(root, 'dist', 'main.js'), 'serve'], {
    ...environmentAt(place),
    ...secretsOf(senderNames),
    COMITY_CONFIG: join(root, 'bench', 'received', 'comity.config.ts'),
  });
  const url = `http://${server.host}:${server.port}/metrics`;

  async function counted(sender: string): Promise<Counted> {
    const response = await fetch(url, { headers: { Authorization: `Bearer ${adminKey}` } });
    const text = await response.text();
    if (response.status !== 200) throw new Error(`GET /metrics was answered ${response.status}: ${text}`);
    const received = 'comity_webhooks_received_total';
    return {
      accepted: sumOf(text, received, sender, 'accepted'),
      duplicate: sumOf(text, received, sender, 'duplicate'),
      processed: sumOf(text, 'comity_received_handed_on_total', sender, 'processed'),
    };
  }

  return {
    server,
    counted,
    async awaitProcessed(sender, count) {
      const untilMs = performance.now() + processedMsMax;
      for (;;) {
        const { processed } = await counted(sender);
        if (processed >= count) return;
        if (performance.now() > untilMs)
          throw new Error(`${count} messages of ${sender} should be processed, not ${processed}`);
        await new Promise((resolve) => setTimeout(resolve, processedPollMs));
      }
    },
    stop: () => server.stop(),
  };
}

function secretsOf(senders: readonly string[]): NodeJS.ProcessEnv {
  return Object.fromEntries(senders.map((sender) => [`${sender.toUpperCase()}_WEBHOOK_SECRET`, secret]));
}

/** Over whatever other labels there are. */
export function sumOf(metrics: string, name: string, sender: string, outcome: string): number {
  let sum = 0;
  for (const line of metrics.split('\n')) {
    if (!line.startsWith(`${name}{`)) continue;
    if (!line.includes(`sender="${sender}"`) || !line.includes(`outcome="${outcome}"`)) continue;
    sum += Number(line.slice(line.lastIndexOf(' ') + 1));
  }
  return sum;
}
