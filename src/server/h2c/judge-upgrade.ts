/**
 * Decides whether a request for h2c can become stream 1 of an HTTP/2 connection (§4.13; RFC 7540 §3.2, which RFC 9113
 * §3.1 obsoletes without forbidding it). A response over HTTP/1.1 is always correct, so unusual requests are declined:
 * long content or of unknown length, a client that waits for 100 (Continue), a target that is not a path, a Host that
 * HTTP/2 cannot carry, and more fields than HTTP/2 accepts.
 */
import { isHost } from '../../http/syntax/host.ts';
import { trimWhitespace } from '../../http/syntax/token.ts';

export type H2cRequest = {
  readonly method: string;
  readonly target: string;
  readonly version: string;
  readonly rawFields: readonly string[];
};

export type H2cBounds = { readonly contentBytesMax: number; readonly fieldsBytesMax: number };

export type H2cJudgement =
  /** `settings`: payload of the SETTINGS frame in HTTP2-Settings; `authority`: the Host. */
  | { readonly ok: true; readonly settings: Uint8Array; readonly authority: string }
  | { readonly ok: false; readonly why: string };

const settingBytes = 6;
/** As many entries as node:http2 accepts in a frame. */
const settingsMax = 32;
/** Below the 128 that node:http2 accepts by default, with room for pseudo-header fields. */
const fieldPairsMax = 100;
/** Octets that HTTP/2 adds to the length of each field (RFC 9113 §6.5.2). */
const fieldOverheadBytes = 32;
const base64url = /^[A-Za-z0-9_-]*$/;

export function judgeH2cUpgrade(request: H2cRequest, bounds: H2cBounds): H2cJudgement {
  const { rawFields } = request;
  const connection = tokensOf(rawFields, 'connection');
  if (request.version !== '1.1') return no('the version is not 1.1');
  if (!tokensOf(rawFields, 'upgrade').includes('h2c')) return no('Upgrade does not name h2c');
  if (!connection.includes('upgrade') || !connection.includes('http2-settings')) {
    return no('Connection does not name both Upgrade and HTTP2-Settings');
  }
  const settings = readSettings(valuesOf(rawFields, 'http2-settings'));
  if (settings === undefined) return no('HTTP2-Settings must be one valid list of settings');
  if (request.method === 'CONNECT') return no('CONNECT is handled separately');
  if (!request.target.startsWith('/') && request.target !== '*') return no('the target is not a path');
  const hosts = valuesOf(rawFields, 'host');
  const [authority = ''] = hosts;
  if (hosts.length !== 1 || authority === '' || !isHost(authority)) return no('Host must be one valid host');
  if (valuesOf(rawFields, 'transfer-encoding').length > 0) return no('the length of the content is unknown');
  if (valuesOf(rawFields, 'expect').length > 0) return no('the client waits for 100 (Continue)');
  const lengths = valuesOf(rawFields, 'content-length');
  if (lengths.length > 1 || Number(lengths[0] ?? 0) > bounds.contentBytesMax)
    return no('the content is too long');
  if (rawFields.length > 2 * fieldPairsMax || listBytes(request) > bounds.fieldsBytesMax) {
    return no('there are too many header fields');
  }
  return { ok: true, settings, authority };
}

function no(why: string): H2cJudgement {
  return { ok: false, why };
}

/** RFC 7540 §3.2.1: one field, base64url without padding, complete settings. */
function readSettings(values: readonly string[]): Uint8Array | undefined {
  const [value] = values;
  if (values.length !== 1 || value === undefined || !base64url.test(value) || value.length % 4 === 1)
    return undefined;
  const payload = Buffer.from(value, 'base64url');
  return payload.length % settingBytes === 0 && payload.length <= settingsMax * settingBytes
    ? payload
    : undefined;
}

function listBytes({ method, target, rawFields }: H2cRequest): number {
  let bytes = method.length + target.length + 4 * fieldOverheadBytes;
  for (let index = 0; index < rawFields.length; index += 1) bytes += rawFields[index]?.length ?? 0;
  return bytes + (rawFields.length / 2) * fieldOverheadBytes;
}

export function tokensOf(rawFields: readonly string[], name: string): readonly string[] {
  return valuesOf(rawFields, name).flatMap((value) =>
    value.split(',').map((token) => trimWhitespace(token).toLowerCase()),
  );
}

function valuesOf(rawFields: readonly string[], name: string): readonly string[] {
  const values: string[] = [];
  for (let index = 0; index + 1 < rawFields.length; index += 2) {
    if (rawFields[index]?.toLowerCase() === name) values.push(trimWhitespace(rawFields[index + 1] ?? ''));
  }
  return values;
}
