/** Settings of sockets, connections and streams (§8). */
import { integer, section, text, toggle } from '../setting.ts';

const KiB = 1024;
const MiB = 1024 * KiB;

export const listeningSettings = section('Listening', {
  host: text(
    '127.0.0.1',
    { charactersMax: 255 },
    'Address to listen on. One that is not loopback needs TLS or `COMITY_BEHIND_PROXY=on`.',
  ),
  port: integer(
    { unit: 'port number', default: 4000, least: 0, most: 65_535 },
    'Port to listen on; 0 picks a free one, which is printed.',
  ),
  behindProxy: toggle(
    'Declares that a proxy which speaks TLS stands in front, so that any address may be listened on, and that it appends the address of its client to `X-Forwarded-For`, whose last one is then what rate limits count by.',
  ),
  connectionsMax: integer(
    { unit: 'connections', default: 10_000, least: 1, most: 1_000_000 },
    'Open connections. When they are used up, one that owes no answer is closed for each that comes; see `connectionsReservedMax`.',
  ),
  connectionsPerAddressMax: integer(
    { unit: 'connections', default: 2000, least: 0, most: 1_000_000 },
    'Open connections of one address, of IPv6 of one /64. 0 sets no limit; behind a proxy none applies, because all connections have its address.',
  ),
  connectionsReservedMax: integer(
    { unit: 'connections', default: 100, least: 0, most: 10_000 },
    'Connections accepted when the bounds above are used up by connections that are busy. Each is answered once, for `/health` and for administrators; others get 503.',
  ),
  headersTimeoutMs: integer(
    { unit: 'ms', default: 15_000, least: 100, most: 600_000 },
    'Time for the request line and header section to arrive; then 408.',
  ),
  contentTimeoutMs: integer(
    { unit: 'ms', default: 30_000, least: 100, most: 3_600_000 },
    'Time for the content of a request to arrive once it is read; then 408.',
  ),
  contentGraceMs: integer(
    { unit: 'ms', default: 5000, least: 100, most: 600_000 },
    'Time after which content must have come at `contentBytesPerSecondMin` on average; else 408.',
  ),
  contentBytesPerSecondMin: integer(
    { unit: 'bytes/s', default: 500, least: 0, most: MiB },
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
  pipelinedRequestsMax: integer(
    { unit: 'requests', default: 100, least: 1, most: 10_000 },
    'Requests of one connection that may wait for their answers; it closes after the last of them.',
  ),
  answerStallTimeoutMs: integer(
    { unit: 'ms', default: 30_000, least: 100, most: 3_600_000 },
    'Time that a client may take nothing of its answer, event stream or WebSocket before it is cut, a WebSocket after a Close with 1013.',
  ),
  drainMs: integer(
    { unit: 'ms', default: 10_000, least: 0, most: 600_000 },
    'Time for requests under way to end after SIGTERM or SIGINT; what is left is cut off.',
  ),
  drainIdleMs: integer(
    { unit: 'ms', default: 250, least: 0, most: 60_000 },
    'While draining, a connection that was answered less than this long ago stays open for one more request.',
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
    'Open event streams of one address, opened without a credential; further ones are answered 429. 0 sets no limit.',
  ),
  streamsReservedMax: integer(
    { unit: 'streams', default: 20, least: 0, most: 10_000 },
    'Event streams that administrators may open beyond `streamsMax`.',
  ),
  streamBufferBytesMax: integer(
    { unit: 'bytes', default: 256 * KiB, least: 4 * KiB, most: 64 * MiB },
    'What may wait for the slow reader of an event stream, who is then cut off and can resume.',
  ),
  eventBatchBytesMax: integer(
    { unit: 'bytes', default: 256 * KiB, least: KiB, most: 64 * MiB },
    'Length of the events that an event stream or a WebSocket reads from the log at once; a batch ends with the event that reaches it, and a slow client has one batch in memory.',
  ),
  streamHeartbeatMs: integer(
    { unit: 'ms', default: 15_000, least: 100, most: 600_000 },
    'Time between two comments on an event stream that has nothing to say.',
  ),
});
