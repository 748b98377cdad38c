/** What a bucket of S3 is asked and answers, for its double and the faults of it. */
import type { IncomingMessage, ServerResponse } from 'node:http';

export type S3Object = {
  readonly octets: Buffer;
  readonly etag: string;
  readonly checksum: string | undefined;
};

export type S3Call = {
  readonly method: string;
  readonly key: string;
  readonly query: URLSearchParams;
  readonly status: number;
};

export type Answer = {
  readonly status: number;
  readonly fields?: Readonly<Record<string, string | undefined>>;
  readonly content?: Buffer | string;
};

export function sendAnswer(
  response: ServerResponse,
  { method }: IncomingMessage,
  { status, fields = {}, content = '' }: Answer,
): void {
  for (const [name, value] of Object.entries(fields))
    if (value !== undefined) response.setHeader(name, value);
  const octets = Buffer.from(content);
  if (status !== 204 && !response.hasHeader('content-length'))
    response.setHeader('content-length', octets.length);
  response.writeHead(status).end(method === 'HEAD' ? undefined : octets);
}

/** @param region where the bucket is, as S3 says to a request for another */
export function xmlError(status: number, code: string, region = ''): Answer {
  const where = region === '' ? '' : `<Region>${region}</Region>`;
  const content = `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code><Message>The double says ${code}</Message>${where}</Error>`;
  return { status, fields: { 'content-type': 'application/xml' }, content };
}
