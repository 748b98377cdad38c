/** What tunnels are measured through: nothing, Comity, and proxies that are programs of others, each started and weighed alike. */
import { fileURLToPath } from 'node:url';
import type { Run } from '../measured-run.ts';
import { memoryOf, processorOf, type ServerProcess, startServer } from '../server-process.ts';
import { type DebianName, debianPaths, startDebianProxy } from './debian-proxies.ts';
import { proxyAuthorization, startConnections } from './program.ts';
import { familyMemoryBytes, familyProcessorUs } from './program-family.ts';

export const proxyNames = [
  ...(['direct', 'comity', 'squid', 'proxy-chain', 'tinyproxy', 'apache2', 'net-pipe'] as const),
] as const;
export type ProxyName = (typeof proxyNames)[number];

export const proxyTitles: Readonly<Record<ProxyName, string>> = {
  direct: 'no proxy',
  comity: 'Comity',
  squid: 'squid',
  'proxy-chain': 'proxy-chain',
  tinyproxy: 'tinyproxy',
  apache2: 'Apache httpd',
  'net-pipe': '`net` and `pipe`',
};

export type StartedProxy = {
  readonly name: ProxyName;
  /** Undefined where there is none and the destination is connected to. */
  readonly address: { readonly host: string; readonly port: number } | undefined;
  /** Of CONNECT, each ended by CRLF. */
  readonly fieldLines: string;
  /** What is its own of the memory, in bytes. */
  memoryBytes(): number;
  /** Processor time so far, in microseconds. */
  processorUs(): number;
  stop(): Promise<void>;
};

/** @returns in words why it is left out, where it cannot be measured here */
export async function startProxy(run: Run, name: ProxyName): Promise<StartedProxy | string> {
  if (name === 'direct') return direct;
  try {
    if (name === 'comity')
      return ofServer(
        name,
        await startConnections(run.pinning, run.engine.newPlace()),
        `Proxy-Authorization: ${proxyAuthorization}\r\n`,
      );
    if (name === 'net-pipe' || name === 'proxy-chain') {
      const program = fileURLToPath(new URL(`../floor/connections/${name}.ts`, import.meta.url));
      return ofServer(name, await startServer(run.pinning, [program]), '');
    }
    return await startDebian(run, name);
  } catch (error) {
    return `${proxyTitles[name]} is not measured: ${error instanceof Error ? error.message : String(error)}`;
  }
}

const direct: StartedProxy = {
  ...{ name: 'direct', address: undefined, fieldLines: '' },
  memoryBytes: () => Number.NaN,
  processorUs: () => Number.NaN,
  stop: async () => undefined,
};

function ofServer(name: ProxyName, server: ServerProcess, fieldLines: string): StartedProxy {
  const { host, port, pid } = server;
  return {
    ...{ name, address: { host, port }, fieldLines },
    memoryBytes: () => memoryOf(pid, 'RssAnon') ?? Number.NaN,
    processorUs: () => processorOf(pid) ?? Number.NaN,
    stop: () => server.stop(),
  };
}

async function startDebian(run: Run, name: DebianName): Promise<StartedProxy | string> {
  const peer = await startDebianProxy(run.pinning, run.folder, name);
  if (peer === undefined)
    return `${proxyTitles[name]} is not measured: ${debianPaths[name]} is not installed`;
  return {
    ...{ name, address: { host: '127.0.0.1', port: peer.port }, fieldLines: '' },
    memoryBytes: () => familyMemoryBytes(peer.pid),
    processorUs: () => familyProcessorUs(peer.pid),
    stop: () => peer.stop(),
  };
}
