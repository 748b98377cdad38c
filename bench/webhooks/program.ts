/** Comity with its sender, as the benchmark starts, asks and watches it. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Agent } from 'undici';
import { adminKey, comityEnvironment, type Place } from '../engine.ts';
import type { Pinning } from '../pin.ts';
import { type ServerProcess, startServer } from '../server-process.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const settledPollMs = 5;
const settledMsMax = 30_000;

export type Program = {
  readonly server: ServerProcess;
  readonly origin: string;
  /** Enables an endpoint, or disables it. */
  setStatus(id: string, status: 'enabled' | 'disabled'): Promise<void>;
  /** Attempts that are written down, of all since the start. */
  settled(): Promise<Settled>;
  /** Waits until so many are. @returns when, in milliseconds since the epoch */
  awaitSettled(delivered: number): Promise<number>;
  stop(): Promise<void>;
};

export type Settled = { readonly delivered: number; readonly failed: number };

export async function startProgram(pinning: Pinning, place: Place): Promise<Program> {
  const database =
    place.store === 'sqlite' ? {} : { COMITY_DATABASE_URL: place.url, COMITY_DATABASE_SCHEMA: place.schema };
  const server = await startServer(pinning, [join(root, 'dist', 'main.js'), 'serve'], {
    ...comityEnvironment,
    ...database,
    COMITY_CONFIG: join(root, 'bench', 'comity.config.ts'),
    COMITY_DATA: place.folder,
    // The receiver is on this machine.
    COMITY_EGRESS_ALLOW: '127.0.0.0/8',
  });
  const origin = `http://${server.host}:${server.port}`;
  const agent = new Agent({ connections: 1 });

  async function ask(method: string, path: string, content?: object): Promise<string> {
    const { statusCode, body } = await agent.request({
      origin,
      path,
      method: method as 'GET',
      headers: {
        authorization: `Bearer ${adminKey}`,
        ...(content === undefined ? {} : { 'content-type': 'application/merge-patch+json' }),
      },
      ...(content === undefined ? {} : { body: JSON.stringify(content) }),
    });
    const text = await body.text();
    if (statusCode >= 300) throw new Error(`${method} ${path} was answered ${statusCode}: ${text}`);
    return text;
  }

  async function settled(): Promise<Settled> {
    const text = await ask('GET', '/metrics');
    const of = (outcome: string): number =>
      Number(
        new RegExp(`^comity_delivery_attempts_total\\{outcome="${outcome}"\\} (\\d+)`, 'm').exec(text)?.[1],
      );
    return { delivered: of('delivered'), failed: of('failed') };
  }

  return {
    server,
    origin,
    settled,
    async setStatus(id, status) {
      await ask('PATCH', `/api/v1/endpoints/${id}`, { status });
    },
    async awaitSettled(delivered) {
      const untilMs = performance.now() + settledMsMax;
      for (;;) {
        const standing = await settled();
        if (standing.delivered >= delivered) return performance.timeOrigin + performance.now();
        if (performance.now() > untilMs || standing.failed > 0)
          throw new Error(`${delivered} deliveries should be written down: ${JSON.stringify(standing)}`);
        await new Promise((resolve) => setTimeout(resolve, settledPollMs));
      }
    },
    async stop() {
      await agent.close();
      await server.stop();
    },
  };
}
