/** Settings of what the program may reach outside and how long it waits for it (§6.8, §8). */
import { refuseCidrs, refusePorts } from '../refuse-addresses.ts';
import { integer, section, text } from '../setting.ts';

const KiB = 1024;
const MiB = 1024 * KiB;

export const egressSettings = section('Egress', {
  egressAllow: text(
    '',
    { charactersMax: 8192, refuse: refuseCidrs },
    'Addresses that the egress guard lets through besides public ones, at any port that the Fetch standard does not block: a comma-separated list such as `127.0.0.0/8,fd00::/8`. Empty: public addresses alone.',
  ),
  egressPorts: text(
    '80,443,1024-65535',
    { charactersMax: 2048, refuse: refusePorts },
    'Ports of public addresses that webhooks may be sent to: a comma-separated list of ports and ranges. Ports that the Fetch standard blocks stay closed whatever it says.',
  ),
  egressDnsMs: integer(
    { unit: 'ms', default: 5000, least: 10, most: 60_000 },
    'Time for a name to resolve; then the attempt has failed.',
  ),
  egressConnectMs: integer(
    { unit: 'ms', default: 10_000, least: 10, most: 60_000 },
    'Time for a connection with its TLS handshake; then the attempt has failed.',
  ),
  egressConnectionsPerOriginMax: integer(
    { unit: 'connections', default: 64, least: 1, most: 4096 },
    'Requests under way to one origin, each on a connection of its own by HTTP/1.1; a further one waits, unless its endpoint has fewer than `COMITY_EGRESS_CONNECTIONS_PER_ENDPOINT_MIN`.',
  ),
  egressConnectionsPerEndpointMin: integer(
    { unit: 'connections', default: 4, least: 1, most: 1024 },
    'Requests to one origin that each endpoint, or each sender whose messages are forwarded, may have under way whatever others have.',
  ),
  egressOriginsMax: integer(
    { unit: 'origins', default: 4096, least: 1, most: 1_000_000 },
    'Origins to which connections are kept; a further one closes those of the one used least lately.',
  ),
  egressIdleMs: integer(
    { unit: 'ms', default: 10_000, least: 1, most: 600_000 },
    'Time after which a connection without a request is closed.',
  ),
  egressHeadBytesMax: integer(
    { unit: 'bytes', default: 16 * KiB, least: KiB, most: MiB },
    'Header section of an answer; a longer one is a failure.',
  ),
  egressAnswerBytesMax: integer(
    { unit: 'bytes', default: 64 * KiB, least: 0, most: 16 * MiB },
    'Content of an answer that is read, and what it may decompress to; the connection is closed on a longer one.',
  ),
  egressAnswerMs: integer(
    { unit: 'ms', default: 2000, least: 1, most: 60_000 },
    'Time for the content of an answer after its header section; then the connection is closed.',
  ),
});
