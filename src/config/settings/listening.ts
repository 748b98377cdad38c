/** Settings of the program as a whole, and of its sockets, connections and streams (§8). */

import { refuseKey, refuseProcesses, refuseSecretKey, refuseSecretKeys } from '../refusals.ts';
import { choice, fixed, integer, section, text, toggle } from '../setting.ts';

const KiB = 1024;

export const listeningSettings = section('Listening', {
  host: text(
    '127.0.0.1',
    { charactersMax: 255 },
    'Address to listen on. One that is not loopback needs TLS or `COMITY_BEHIND_PROXY=on`.',
  ),
  port: integer(
    { unit: 'port number', default: 4000, least: 0, most: 65_535 },
    'Port to listen on; 0 picks a free port, which is printed.',
  ),
  behindProxy: toggle(
    'Declares that a TLS proxy is in front, so that Comity may listen on any address, and that it appends the address of its client to `X-Forwarded-For`: rate limits count by the last address there. Refusals follow the content of their requests.',
  ),
  connectionsMax: integer(
    { unit: 'connections', default: 10_000, least: 1, most: 1_000_000 },
    'Open connections. At the limit, Comity closes an idle connection for each new one; see `connectionsReservedMax`.',
  ),
  connectionsPerAddressMax: integer(
    { unit: 'connections', default: 2000, least: 0, most: 1_000_000 },
    'Open connections of one address, or of one /64 of IPv6. 0 sets no limit; behind a proxy there is none, because all connections have its address.',
  ),
  connectionsReservedMax: integer(
    { unit: 'connections', default: 100, least: 0, most: 10_000 },
    'Connections that Comity accepts beyond the limits above when every other connection is busy. Each serves one request, for `/health` or of an administrator; any other is answered 503.',
  ),
  headersTimeoutMs: integer(
    { unit: 'ms', default: 15_000, least: 100, most: 600_000 },
    'Time for the request line and header section to arrive; then 408.',
  ),
  contentTimeoutMs: integer(
    { unit: 'ms', default: 30_000, least: 100, most: 3_600_000 },
    'Time for the content of a request to arrive, from the start of reading it; then 408.',
  ),
  contentGraceMs: fixed(
    { unit: 'ms', value: 5000 },
    'Time after which content must have arrived at `contentBytesPerSecondMin` on average; else 408.',
  ),
  contentBytesPerSecondMin: fixed(
    { unit: 'bytes/s', value: 500 },
    'Least average rate of content once `contentGraceMs` is over.',
  ),
  requestTimeoutMs: integer(
    { unit: 'ms', default: 60_000, least: 100, most: 3_600_000 },
    'Time for a whole request to arrive; then 408.',
  ),
  keepAliveTimeoutMs: integer(
    { unit: 'ms', default: 65_000, least: 1, most: 3_600_000 },
    'Time that a connection may stay idle between two requests.',
  ),
  pipelinedRequestsMax: fixed(
    { unit: 'requests', value: 100 },
    'Pipelined requests of one connection that may wait for their answers; the connection closes after the last of them.',
  ),
  answerStallTimeoutMs: integer(
    { unit: 'ms', default: 30_000, least: 100, most: 3_600_000 },
    'Time without progress in sending an answer, an event stream or a WebSocket message, after which the connection is cut (a WebSocket after a Close with 1013).',
  ),
  drainMs: integer(
    { unit: 'ms', default: 10_000, least: 0, most: 600_000 },
    'Time for requests under way to end after SIGTERM or SIGINT; then Comity cuts the remaining connections.',
  ),
  drainIdleMs: fixed(
    { unit: 'ms', value: 250 },
    'While draining, a connection with an answer less than this long ago stays open for one more request.',
  ),
  streamsMax: integer(
    { unit: 'streams', default: 1000, least: 0, most: 1_000_000 },
    'Open event streams; further ones are answered 503.',
  ),
  streamsPerPrincipalMax: integer(
    { unit: 'streams', default: 100, least: 0, most: 1_000_000 },
    'Open event streams of one principal; further ones are answered 429. 0 sets no limit; administrators have none.',
  ),
  streamsPerAddressMax: integer(
    { unit: 'streams', default: 100, least: 0, most: 1_000_000 },
    'Open event streams of one address that were opened without a credential; further ones are answered 429. 0 sets no limit.',
  ),
  streamsReservedMax: fixed(
    { unit: 'streams', value: 20 },
    'Event streams that administrators may open beyond `streamsMax`.',
  ),
  streamBufferBytesMax: fixed(
    { unit: 'bytes', value: 256 * KiB },
    'Bytes that may wait for a slow client of an event stream; beyond it, the stream is cut and can be resumed.',
  ),
  eventBatchBytesMax: fixed(
    { unit: 'bytes', value: 256 * KiB },
    'Length of a batch of events that Comity reads from the log for event streams and WebSockets. A batch ends with the event that reaches it; a slow client holds one batch in memory.',
  ),
  eventsWaitSecondsMax: integer(
    { unit: 's', default: 30, least: 0, most: 3600 },
    'Time for which an empty page of the feed of events is held at most (`Prefer: wait`). A page that is held counts as an open event stream. 0 holds none.',
  ),
  streamHeartbeatMs: integer(
    { unit: 'ms', default: 15_000, least: 100, most: 600_000 },
    'Time between two comments on an idle event stream.',
  ),
});

export const programSettings = section('Program', {
  config: text(
    'comity.config.ts',
    {},
    'Path of the configuration file; `npm start` serves `examples/shop/comity.config.ts`.',
  ),
  data: text('./data', {}, 'Folder of the embedded store and its files; created when missing.'),
  processes: text(
    '1',
    { charactersMax: 4, refuse: refuseProcesses },
    'Workers that serve the port together, each with an event loop of its own: `auto` starts one for each processor. They share the memory budget; limits of connections and of queues hold for each. More than 1 needs Linux or another system where sockets share a port evenly.',
  ),
  workerSilenceMs: integer(
    { unit: 'ms', default: 30_000, least: 1000, most: 3_600_000 },
    'Time after which a worker that answers nothing is ended and replaced: something keeps its event loop and never lets go. Its connections break.',
  ),
  adminKey: text(
    undefined,
    { charactersMax: 255, secret: true, refuse: refuseKey },
    'Key of the administrator, starting with `sk_`. Without it, Comity creates one at the first start and prints it once.',
  ),
  secretKey: text(
    undefined,
    { charactersMax: 64, secret: true, refuse: refuseSecretKey },
    'Key that encrypts the secrets in the store: 32 random octets in base64 or hexadecimal. Without it, Comity creates a key file `secret.key` in the folder `data`. A backup cannot be used without the key.',
  ),
  secretKeyPrevious: text(
    undefined,
    { secret: true, refuse: refuseSecretKeys },
    'Keys that `COMITY_SECRET_KEY` replaces, separated by commas: Comity still decrypts with them. After `comity secrets rotate` they are no longer needed.',
  ),
  logLevel: choice(
    ['fatal', 'error', 'warn', 'info', 'debug', 'silent'],
    'info',
    'Least level of a log line. `debug` logs every answer, and shows the stack of an error that ends the program.',
  ),
  loopHeldMs: integer(
    { unit: 'ms', default: 50, least: 5, most: 60_000 },
    'Time for which one request may hold the event loop before the log names it (`the event loop was held`).',
  ),
  dashboard: choice(
    ['on', 'off'],
    'on',
    'Serves the dashboard at `/dashboard`. It calls the API with the rights of its user, and has none of its own.',
  ),
  portal: choice(
    ['on', 'off'],
    'on',
    'Serves the portal of tenants at `/portal`, and the links that open it. `off`: sessions that links have opened end too.',
  ),
  development: toggle('Adds `Comity-Trace` to every answer: the decisions that led to its status.'),
});
