/** Settings of what a connection can become: TLS, HTTP/2, a WebSocket, a tunnel (§4.10, §4.13, §8). */
import { refusePortNumber, refusePorts } from '../refuse-addresses.ts';
import { choice, integer, section, text } from '../setting.ts';

const KiB = 1024;
const MiB = 1024 * KiB;

export const tlsSettings = section('TLS', {
  tlsCert: text(
    undefined,
    { charactersMax: 4096 },
    'Path of a PEM file with the certificate and those that it depends on. With `COMITY_TLS_KEY` the port speaks TLS; both files are read again when they change.',
  ),
  tlsKey: text(
    undefined,
    { charactersMax: 4096 },
    'Path of a PEM file with the private key of the certificate.',
  ),
  tlsPort: text(
    undefined,
    { charactersMax: 5, refuse: refusePortNumber },
    'Port that speaks TLS beside `COMITY_PORT`, which then stays cleartext; 0 picks a free one, which is printed. Unset: with a certificate, `COMITY_PORT` speaks TLS itself.',
  ),
  tlsAlpn: choice(
    ['h2,http/1.1', 'http/1.1'],
    'h2,http/1.1',
    'Protocols that are offered by ALPN. Some clients that take HTTP/2 from a proxy over TLS never connect by it; for those `http/1.1` alone.',
  ),
});

export const http2Settings = section('HTTP/2', {
  http2StreamsMax: integer(
    { unit: 'streams', default: 250, least: 1, most: 100_000 },
    'Requests, WebSockets and tunnels that one HTTP/2 connection may have open at once; further ones are refused with REFUSED_STREAM.',
  ),
  http2StreamWindowBytesMax: integer(
    { unit: 'bytes', default: 256 * KiB, least: 65_535, most: 16 * MiB },
    'What a client may send on one stream before it is read.',
  ),
  http2ConnectionWindowBytesMax: integer(
    { unit: 'bytes', default: MiB, least: 65_535, most: 64 * MiB },
    'What a client may send on all streams of a connection before it is read.',
  ),
  http2ResetsPerSecondMax: integer(
    { unit: 'streams/s', default: 33, least: 1, most: 100_000 },
    'Streams of one connection that a client may reset, on average; thirty times as many at once. Then the connection is closed.',
  ),
  h2cTimeoutMs: integer(
    { unit: 'ms', default: 5000, least: 100, most: 60_000 },
    'Time for the connection preface of HTTP/2 after `Upgrade: h2c` was taken, and for the first octets of any connection in cleartext to tell the protocol.',
  ),
  h2cContentBytesMax: integer(
    { unit: 'bytes', default: 32 * KiB, least: 0, most: 32 * KiB },
    'Content of a request with `Upgrade: h2c`; with more, the request is answered over HTTP/1.1.',
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
    'Open WebSockets of one address, opened without a credential; further ones are answered 429. 0 sets no limit.',
  ),
  realtimeSocketsReservedMax: integer(
    { unit: 'sockets', default: 100, least: 0, most: 10_000 },
    'WebSockets that administrators may open beyond `realtimeSocketsMax`.',
  ),
  realtimeAttemptMs: integer(
    { unit: 'ms', default: 1000, least: 0, most: 60_000 },
    'Time after which one more attempt to open a WebSocket is granted to a principal, or without one to an address. 0 sets no limit.',
  ),
  realtimeAttemptsMax: integer(
    { unit: 'attempts', default: 10, least: 1, most: 10_000 },
    'Attempts to open a WebSocket that may come at once; further ones are answered 429 until `realtimeAttemptMs` grants one.',
  ),
  realtimePingMs: integer(
    { unit: 'ms', default: 30_000, least: 100, most: 3_600_000 },
    'Time between two pings of a WebSocket; one that answered none of them until the next is cut.',
  ),
  realtimeMessageBytesMax: integer(
    { unit: 'bytes', default: 16 * KiB, least: 64, most: 16 * MiB },
    'Length of a message that a client may send; a longer one closes the WebSocket with 1009.',
  ),
  realtimeBufferBytesMax: integer(
    { unit: 'bytes', default: 256 * KiB, least: 4 * KiB, most: 64 * MiB },
    'What may wait for a slow client, whose WebSocket is then closed with 1013 and can be resumed.',
  ),
  realtimePatternsMax: integer(
    { unit: 'patterns', default: 100, least: 1, most: 10_000 },
    'Patterns that one WebSocket may be subscribed to.',
  ),
  realtimeTicketSeconds: integer(
    { unit: 's', default: 30, least: 1, most: 3600 },
    'Time in which a ticket opens a WebSocket, once.',
  ),
  realtimeCloseMs: integer(
    { unit: 'ms', default: 2000, least: 10, most: 60_000 },
    'Time for a client to answer the end of a WebSocket; then it is cut.',
  ),
  realtimeCompression: choice(
    ['on', 'off'],
    'on',
    'Whether permessage-deflate is agreed to where a client offers it (RFC 7692).',
  ),
  realtimeCompressionBytesMin: integer(
    { unit: 'bytes', default: 1024, least: 0, most: 16 * MiB },
    'Messages shorter than this are sent uncompressed.',
  ),
});

export const tunnelSettings = section('Tunnel', {
  tunnel: choice(
    ['on', 'off'],
    'on',
    'Whether CONNECT, connect-udp and requests for other servers are served, to principals with the scope `tunnel`. Off: CONNECT is answered 405.',
  ),
  tunnelPorts: text(
    '443',
    { charactersMax: 2048, refuse: refusePorts },
    'Ports that a tunnel may lead to, and a request be forwarded to: a comma-separated list of ports and ranges.',
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
    'Octets in both directions that tunnels of one principal may carry at one process in a day (UTC); then they are cut and further ones answered 429. 0 sets no limit.',
  ),
  tunnelIdleMs: integer(
    { unit: 'ms', default: 600_000, least: 100, most: 86_400_000 },
    'Time in which a tunnel carries nothing; then both sides are closed.',
  ),
  tunnelHalfClosedMs: integer(
    { unit: 'ms', default: 60_000, least: 100, most: 86_400_000 },
    'Time in which a tunnel carries nothing after one side has ended; then both sides are closed.',
  ),
  tunnelAnswerMs: integer(
    { unit: 'ms', default: 60_000, least: 100, most: 3_600_000 },
    'Time for the header section of the answer to a forwarded request; then 504.',
  ),
  tunnelUdpIdleMs: integer(
    { unit: 'ms', default: 120_000, least: 1000, most: 3_600_000 },
    'Time in which a connect-udp tunnel carries nothing; then it is closed.',
  ),
  tunnelUdpBufferBytesMax: integer(
    { unit: 'bytes', default: 256 * KiB, least: 65_536, most: 64 * MiB },
    'What may wait for the slow client of a connect-udp tunnel; further datagrams are dropped.',
  ),
});
