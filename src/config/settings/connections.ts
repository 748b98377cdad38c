/** Settings of TLS, HTTP/2, WebSockets, tunnels and outgoing connections (§4.10, §4.13, §6.8, §8). */
import { refuseCidrs, refusePortNumber, refusePorts } from '../refusals.ts';
import { choice, fixed, integer, section, text } from '../setting.ts';

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
    { unit: 'ms', default: 30_000, least: 100, most: 3_600_000 },
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
