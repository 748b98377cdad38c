/**
 * Checks Signature Version 4 as S3 does, by the text of AWS's documentation and not by the code that signs: the canonical request is made of
 * what arrived, and every `x-amz-` field must be signed.
 * https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

export type S3Credential = {
  readonly accessKey: string;
  readonly secretKey: string;
  readonly sessionToken?: string;
};

export type S3Refusal = { readonly status: number; readonly code: string };

export type SignatureTerms = {
  readonly credential: S3Credential;
  readonly region: string;
  readonly nowMs: number;
};

const skewMsMax = 15 * 60_000;
const authorizationForm =
  /^AWS4-HMAC-SHA256 Credential=([^/,]+)\/(\d{8})\/([^/,]+)\/s3\/aws4_request, ?SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})$/;

/** Undefined for a valid signature. The digest of the content is checked elsewhere, when the content has arrived. */
export function refuseSignature(request: IncomingMessage, terms: SignatureTerms): S3Refusal | undefined {
  const { credential, region, nowMs } = terms;
  const found = authorizationForm.exec(request.headers.authorization ?? '');
  if (found === null) return { status: 403, code: 'AccessDenied' };
  const [, accessKey = '', day = '', scope = '', signed = '', signature = ''] = found;
  if (accessKey !== credential.accessKey) return { status: 403, code: 'InvalidAccessKeyId' };
  if (scope !== region) return { status: 400, code: 'AuthorizationHeaderMalformed' };
  const date = single(request, 'x-amz-date');
  const at = Date.parse(date.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'));
  if (Number.isNaN(at) || date.slice(0, 8) !== day) return { status: 403, code: 'AccessDenied' };
  if (Math.abs(at - nowMs) > skewMsMax) return { status: 403, code: 'RequestTimeTooSkewed' };
  const names = signed.split(';');
  const needed = ['host', ...Object.keys(request.headers).filter((name) => name.startsWith('x-amz-'))];
  if (needed.some((name) => !names.includes(name)) || names.join() !== names.toSorted().join()) {
    return { status: 403, code: 'AccessDenied' };
  }
  const scopeText = `${day}/${region}/s3/aws4_request`;
  const toSign = ['AWS4-HMAC-SHA256', date, scopeText, sha256(canonicalRequest(request, names))].join('\n');
  const key = [day, region, 's3', 'aws4_request'].reduce<string | Buffer>(
    (chain, part) => createHmac('sha256', chain).update(part).digest(),
    `AWS4${credential.secretKey}`,
  );
  const expected = createHmac('sha256', key).update(toSign).digest();
  if (!timingSafeEqual(expected, Buffer.from(signature, 'hex')))
    return { status: 403, code: 'SignatureDoesNotMatch' };
  const token = request.headers['x-amz-security-token'];
  return token === credential.sessionToken ? undefined : { status: 403, code: 'InvalidToken' };
}

function canonicalRequest(request: IncomingMessage, names: readonly string[]): string {
  const [path = '', query = ''] = (request.url ?? '').split('?');
  const pairs = query === '' ? [] : query.split('&').map((pair) => pair.split('='));
  const sorted = pairs
    .map(
      ([name = '', value = '']) =>
        `${encoded(decodeURIComponent(name))}=${encoded(decodeURIComponent(value))}`,
    )
    .sort();
  const fields = names
    .map((name) => `${name}:${single(request, name).trim().replace(/ +/g, ' ')}\n`)
    .join('');
  const canonicalPath = path
    .split('/')
    .map((part) => encoded(decodeURIComponent(part)))
    .join('/');
  const digest = single(request, 'x-amz-content-sha256');
  return [request.method, canonicalPath, sorted.join('&'), fields, names.join(';'), digest].join('\n');
}

/** Everything but unreserved characters as octets in hexadecimal. */
function encoded(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (each) => `%${each.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

function single(request: IncomingMessage, name: string): string {
  return String(request.headers[name] ?? '');
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
