/**
 * Settings of the program's sockets, connections and streams (§8), of TLS, HTTP/2, WebSockets and tunnels, and of outgoing connections
 * (§4.10, §4.13, §6.8, §8).
 */
import {
  refuseCidrs,
  refuseKey,
  refusePortNumber,
  refusePorts,
  refuseProcesses,
  refuseSecretKey,
  refuseSecretKeys,
  refuseToken,
} from '../refusals.ts';
import { choice, fixed, integer, section, text, toggle } from '../setting.ts';

const KiB = 1024;
const MiB = 1024 * KiB;

export const tlsSettings = section('TLS', {
  tlsCert: text(
    undefined,
    { charactersMax: 4096 },
    'Path of a PEM file with the certificate and its chain. With `COMITY_TLS_KEY`, the port uses TLS; Comity reads both files again when they change.',
  ),
  tlsKey: text(
    undefined,
    { charactersMax: 4096 },
    'Path of a PEM file with the private key of the certificate.',
  ),
  tlsPort: text(
    undefined,
    { charactersMax: 5, refuse: refusePortNumber },
    'Port for TLS in addition to `COMITY_PORT`, which then stays cleartext; 0 picks a free port, which is printed. Unset: with a certificate, `COMITY_PORT` itself uses TLS.',
  ),
  tlsAlpn: choice(
    ['h2,http/1.1', 'http/1.1'],
    'h2,http/1.1',
    'Protocols that Comity offers by ALPN. Some clients negotiate HTTP/2 with a proxy over TLS and then fail to use it; set `http/1.1` for those.',
  ),
});

export const http2Settings = section('HTTP/2', {
  http2StreamsMax: integer(
    { unit: 'streams', default: 250, least: 1, most: 100_000 },
    'Requests, WebSockets and tunnels that one HTTP/2 connection may have open at once; further ones are refused with REFUSED_STREAM.',
  ),
  http2StreamWindowBytesMax: fixed(
    { unit: 'bytes', value: 256 * KiB },
    'Bytes that a client may send on one stream before Comity reads them.',
  ),
  http2ConnectionWindowBytesMax: fixed(
    { unit: 'bytes', value: MiB },
    'Bytes that a client may send on all streams of a connection before Comity reads them.',
  ),
  http2ResetsPerSecondMax: fixed(
    { unit: 'streams/s', value: 33 },
    'Streams that a client may reset on one connection, on average; up to thirty times as many in a burst. Beyond it, the connection is closed.',
  ),
  h2cTimeoutMs: fixed(
    { unit: 'ms', value: 5000 },
    'Time for the connection preface of HTTP/2 after an accepted `Upgrade: h2c`, and for the first octets of any cleartext connection, which tell its protocol.',
  ),
  h2cContentBytesMax: fixed(
    { unit: 'bytes', value: 32 * KiB },
    'Length of the content of a request with `Upgrade: h2c`; a request with more is answered over HTTP/1.1.',
  ),
});

export const realtimeSettings = section('Realtime', {
  realtimeSocketsMax: integer(
    { unit: 'sockets', default: 10_000, least: 0, most: 1_000_000 },
    'Open WebSockets; further ones are answered 503.',
  ),
  realtimeSocketsPerPrincipalMax: integer(
    { unit: 'sockets', default: 1000, least: 0, most: 1_000_000 },
    'Open WebSockets of one principal; further ones are answered 429. 0 sets no limit; administrators have none.',
  ),
  realtimeSocketsPerAddressMax: integer(
    { unit: 'sockets', default: 1000, least: 0, most: 1_000_000 },
    'Open WebSockets of one address that were opened without a credential; further ones are answered 429. 0 sets no limit.',
  ),
  realtimeSocketsReservedMax: fixed(
    { unit: 'sockets', value: 100 },
    'WebSockets that administrators may open beyond `realtimeSocketsMax`.',
  ),
  realtimeAttemptMs: integer(
    { unit: 'ms', default: 1000, least: 0, most: 60_000 },
    'Time after which one principal, or one address without a credential, may make one more attempt to open a WebSocket. 0 sets no limit.',
  ),
  realtimeAttemptsMax: integer(
    { unit: 'attempts', default: 10, least: 1, most: 10_000 },
    'Attempts to open a WebSocket in a burst; further ones are answered 429 until `realtimeAttemptMs` allows one.',
  ),
  realtimePingMs: integer(
    { unit: 'ms', default: 25_000, least: 100, most: 3_600_000 },
    'Time between two pings of a WebSocket; a client that has not answered by the next ping is disconnected.',
  ),
  realtimeMessageBytesMax: fixed(
    { unit: 'bytes', value: 16 * KiB },
    'Length of a message that a client may send over a WebSocket; a longer one closes it with 1009.',
  ),
  realtimeMessagesPerMinuteMax: integer(
    { unit: 'messages', default: 600, least: 1, most: 1_000_000 },
    'Messages that a client may send over one WebSocket in any 60 seconds, malformed ones included; one more closes it with 4429.',
  ),
  realtimeBufferBytesMax: fixed(
    { unit: 'bytes', value: 256 * KiB },
    'Bytes that may wait for a slow client of a WebSocket; beyond it, the WebSocket is closed with 1013 and can be resumed.',
  ),
  realtimePatternsMax: fixed(
    { unit: 'patterns', value: 100 },
    'Patterns that one WebSocket may subscribe to.',
  ),
  realtimeTicketSeconds: fixed({ unit: 's', value: 30 }, 'Lifetime of a ticket, which opens one WebSocket.'),
  realtimeCloseMs: fixed(
    { unit: 'ms', value: 2000 },
    'Time for a client to answer a Close frame; then the connection is cut.',
  ),
  realtimeCompression: choice(
    ['on', 'off'],
    'on',
    '`on`: Comity accepts permessage-deflate where a client offers it (RFC 7692).',
  ),
  realtimeCompressionBytesMin: fixed(
    { unit: 'bytes', value: 1024 },
    'Messages shorter than this are sent uncompressed.',
  ),
});

export const tunnelSettings = section('Tunnel', {
  tunnel: choice(
    ['on', 'off'],
    'on',
    '`on`: principals with the scope `tunnel` may use CONNECT, connect-udp and requests for other servers. `off`: CONNECT is answered 405.',
  ),
  tunnelPorts: text(
    '443',
    { charactersMax: 2048, refuse: refusePorts },
    'Ports that tunnels and forwarded requests may connect to: a comma-separated list of ports and ranges.',
  ),
  tunnelsMax: integer(
    { unit: 'tunnels', default: 10_000, least: 0, most: 1_000_000 },
    'Open tunnels and forwarded requests of all principals; further ones are answered 503.',
  ),
  tunnelsPerPrincipalMax: integer(
    { unit: 'tunnels', default: 1000, least: 1, most: 1_000_000 },
    'Open tunnels and forwarded requests of one principal at one process; further ones are answered 429.',
  ),
  tunnelBytesPerDayMax: integer(
    { unit: 'bytes', default: 0, least: 0, most: 100_000_000_000_000 },
    'Octets in both directions that the tunnels of one principal may carry at one process in a day (UTC). Beyond it, Comity cuts its tunnels and answers further ones 429. 0 sets no limit.',
  ),
  tunnelIdleMs: integer(
    { unit: 'ms', default: 600_000, least: 100, most: 86_400_000 },
    'Time without traffic after which both sides of a tunnel are closed.',
  ),
  tunnelHalfClosedMs: fixed(
    { unit: 'ms', value: 60_000 },
    'Time without traffic after which a tunnel is closed once one side has ended.',
  ),
  tunnelAnswerMs: fixed(
    { unit: 'ms', value: 60_000 },
    'Time for the header section of the answer to a forwarded request; then 504.',
  ),
  tunnelUdpIdleMs: fixed(
    { unit: 'ms', value: 120_000 },
    'Time without traffic after which a connect-udp tunnel is closed.',
  ),
  tunnelUdpBufferBytesMax: fixed(
    { unit: 'bytes', value: 256 * KiB },
    'Bytes that may wait for a slow client of a connect-udp tunnel; further datagrams are dropped.',
  ),
});

export const egressSettings = section('Egress', {
  egressAllow: text(
    '',
    { charactersMax: 8192, refuse: refuseCidrs },
    'Addresses that Comity may connect to besides public ones, at any port that the Fetch standard does not block: a comma-separated list such as `127.0.0.0/8,fd00::/8`. Empty: only public addresses.',
  ),
  egressPorts: text(
    '80,443,1024-65535',
    { charactersMax: 2048, refuse: refusePorts },
    'Ports of public addresses that webhooks may be sent to: a comma-separated list of ports and ranges. Ports that the Fetch standard blocks stay blocked.',
  ),
  egressDnsMs: fixed({ unit: 'ms', value: 5000 }, 'Time for a name to resolve; then the attempt fails.'),
  egressConnectMs: fixed(
    { unit: 'ms', value: 10_000 },
    'Time for a connection with its TLS handshake; then the attempt fails.',
  ),
  egressConnectionsPerOriginMax: integer(
    { unit: 'connections', default: 64, least: 1, most: 4096 },
    'Requests under way to one origin, each on an HTTP/1.1 connection of its own; a further one waits, unless its endpoint has fewer than 4.',
  ),
  egressConnectionsPerEndpointMin: fixed(
    { unit: 'connections', value: 4 },
    'Requests to one origin that each endpoint, or each sender whose messages are forwarded, may always have under way.',
  ),
  egressOriginsMax: fixed(
    { unit: 'origins', value: 4096 },
    'Origins to which connections are kept; a further one closes those of the least recently used.',
  ),
  egressIdleMs: fixed(
    { unit: 'ms', value: 10_000 },
    'Time after which a connection without a request is closed.',
  ),
  egressHeadBytesMax: fixed(
    { unit: 'bytes', value: 16 * KiB },
    'Length of the header section of an answer; a longer one fails the attempt.',
  ),
  egressAnswerBytesMax: fixed(
    { unit: 'bytes', value: 64 * KiB },
    'Length of the content of an answer to a webhook, before and after decompression; Comity closes the connection at a longer one.',
  ),
  egressAnswerMs: fixed(
    { unit: 'ms', value: 2000 },
    'Time for the content of an answer to a webhook after its header section; then the connection is closed.',
  ),
});

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
  proxiesTrusted: integer(
    { unit: 'proxies', default: 1, least: 1, most: 100 },
    'Proxies in a row, with `COMITY_BEHIND_PROXY=on`, that each append an address to `X-Forwarded-For`: limits count by the address that the outermost saw.',
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
    'Time for the content of a request to arrive, from the start of reading it; then 408. Of content that is taken as it arrives, such as a file: the time over which it must keep `contentBytesPerSecondMin`, again and again.',
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
    'Time for a whole request to arrive, but for content that is taken as it arrives; then 408.',
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
  drainDelaySeconds: integer(
    { unit: 's', default: 0, least: 0, most: 600 },
    'Time after SIGTERM or SIGINT for which requests are still taken and served while `/health/ready` answers 503, so that load balancers leave first; then the drain begins.',
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
  metricsToken: text(
    undefined,
    { charactersMax: 255, secret: true, refuse: refuseToken },
    'Token with which a scraper reads `/metrics`, as `Authorization: Bearer`, and nothing else: 16 or more letters, digits and `-._~+/`. Administrators read the metrics with and without it.',
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
