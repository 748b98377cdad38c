/**
 * The client's opening handshake of a WebSocket (§4.13, §9; RFC 6455 §4.1, RFC 8441 §5): over HTTP/1.1 a GET with Upgrade, Connection, a
 * version and a key; over HTTP/2 an extended CONNECT with a version. Read strictly: each field once, version 13 only, a key of 16 octets in
 * base64. Extensions and subprotocols are interpreted elsewhere.
 */
import { decodeBase64 } from './base64.ts';
import { isToken, parseFieldList, tokensOf, valuesOf } from './field-value.ts';

type HandshakeRequest = {
  readonly method: string;
  readonly version: string;
  readonly rawFields: readonly string[];
  readonly protocol?: string | undefined;
};

type WebSocketHandshake =
  | { readonly kind: 'absent' }
  /** `subprotocols`: those of the client, in its order; empty if it offered none. */
  | { readonly kind: 'sound'; readonly subprotocols: readonly string[] }
  | { readonly kind: 'malformed'; readonly complaint: string };

const websocketVersion = '13';
const keyBytes = 16;
const extendedConnectNeeded = 'over HTTP/2 a WebSocket requires CONNECT with :protocol websocket (RFC 8441)';

export function readWebSocketHandshake(request: HandshakeRequest): WebSocketHandshake {
  const { rawFields } = request;
  const overHttp2 = request.protocol !== undefined;
  const upgrade = tokensOf(rawFields, 'upgrade');
  const keys = valuesOf(rawFields, 'sec-websocket-key');
  const versions = valuesOf(rawFields, 'sec-websocket-version');
  // HTTP/2 has no Upgrade (RFC 9113 §8.6), so 426 would suggest a way that does not exist there.
  if (!overHttp2 && request.version === '2.0') return { kind: 'malformed', complaint: extendedConnectNeeded };
  if (!overHttp2 && upgrade.length + keys.length + versions.length === 0) return { kind: 'absent' };
  const complaint = overHttp2
    ? complainOfProtocol(request.protocol)
    : complainOfUpgrade(request, upgrade, keys);
  if (complaint !== undefined) return { kind: 'malformed', complaint };
  if (versions.length !== 1 || versions[0] !== websocketVersion) {
    return { kind: 'malformed', complaint: `Sec-WebSocket-Version must be ${websocketVersion}` };
  }
  const subprotocols = valuesOf(rawFields, 'sec-websocket-protocol').flatMap(
    (value) => parseFieldList(value) ?? [''],
  );
  if (subprotocols.some((name) => !isToken(name)) || new Set(subprotocols).size < subprotocols.length) {
    return {
      kind: 'malformed',
      complaint: 'Sec-WebSocket-Protocol must be a list of distinct names',
    };
  }
  return { kind: 'sound', subprotocols };
}

/** Refuses a protocol other than `websocket`; the receiver of the extended CONNECT has checked the fields. */
function complainOfProtocol(protocol: string | undefined): string | undefined {
  return protocol === 'websocket' ? undefined : 'the protocol of the extended CONNECT must be websocket';
}

function complainOfUpgrade(
  { method, version, rawFields }: HandshakeRequest,
  upgrade: readonly string[],
  keys: readonly string[],
): string | undefined {
  if (method !== 'GET') return 'a WebSocket requires GET';
  if (version !== '1.1') return 'a WebSocket requires HTTP/1.1, or an extended CONNECT over HTTP/2';
  if (!upgrade.includes('websocket')) return 'Upgrade must name websocket';
  if (!tokensOf(rawFields, 'connection').includes('upgrade')) return 'Connection must name Upgrade';
  if (keys.length !== 1) return 'Sec-WebSocket-Key is required exactly once';
  return decodeBase64(keys[0] ?? '')?.length === keyBytes
    ? undefined
    : `Sec-WebSocket-Key must be ${keyBytes} octets in base64`;
}
