/** Comity with what a connection can become, as the benchmark starts it. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { adminKey, comityEnvironment, type Place } from '../engine.ts';
import type { Pinning } from '../pin.ts';
import { type ServerProcess, startServer } from '../server-process.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const connectionsMax = '20000';

export const realtimePath = '/api/v1/realtime';
export const eventsPath = '/api/v1/events';
export const authorization = `Bearer ${adminKey}`;
/** What a tunnel asks for: the key as the name of the user. */
export const proxyAuthorization = `Basic ${Buffer.from(`${adminKey}:`).toString('base64')}`;

export function startConnections(pinning: Pinning, place: Place): Promise<ServerProcess> {
  return startServer(pinning, [join(root, 'dist', 'main.js'), 'serve'], {
    ...comityEnvironment,
    COMITY_CONFIG: join(root, 'bench', 'comity.config.ts'),
    COMITY_DATA: place.folder,
    COMITY_CONNECTIONS_MAX: connectionsMax,
    COMITY_REALTIME_SOCKETS_MAX: connectionsMax,
    // All clients have one address, and some one principal.
    COMITY_CONNECTIONS_PER_ADDRESS_MAX: '0',
    COMITY_REALTIME_SOCKETS_PER_PRINCIPAL_MAX: '0',
    COMITY_REALTIME_SOCKETS_PER_ADDRESS_MAX: '0',
    COMITY_STREAMS_PER_ADDRESS_MAX: '0',
    COMITY_REALTIME_ATTEMPT_MS: '0',
    // Destinations are on this machine.
    COMITY_EGRESS_ALLOW: '127.0.0.0/8',
    COMITY_TUNNEL_PORTS: '1-65535',
    COMITY_TUNNELS_MAX: connectionsMax,
    COMITY_TUNNELS_PER_PRINCIPAL_MAX: connectionsMax,
  });
}
