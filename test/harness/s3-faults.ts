/** What goes wrong between a program and its bucket, one at a time and on demand: s3-double.ts asks for each request whether it is to fail. */
import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { type Answer, type S3Call, type S3Object, sendAnswer, xmlError } from './s3-messages.ts';

type Asked = Omit<S3Call, 'status'>;

/** A request that fails, and what it would get if it did not. */
type Failing = {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly call: Asked;
  readonly answer: () => Promise<Answer>;
  readonly objects: Map<string, S3Object>;
};

type Happen = (failing: Failing) => Promise<unknown> | unknown;

export type FaultOptions = {
  /** Requests that fail; default: the next one. */
  readonly times?: number;
  readonly on?: ((call: Asked) => boolean) | undefined;
};

export type Fault = FaultOptions & { readonly kind: FaultKind; left: number };

export function takeFault(faults: Fault[], call: Asked): { readonly happen: Happen } | undefined {
  const found = faults.find(({ left, on }) => left > 0 && (on === undefined || on(call)));
  if (found === undefined) return undefined;
  found.left -= 1;
  return { happen: happenings[found.kind] };
}

const errorPage = `<html><head><title>Sign in to the network</title></head><body>${'please '.repeat(40)}</body></html>`;

/** Gives the error and takes the content of the request first, as a server behind a balancer does. */
function refuse(status: number, code: string, fields: Answer['fields'] = {}): Happen {
  return ({ request, response }) => {
    request.resume();
    request.once('end', () => sendAnswer(response, request, { ...xmlError(status, code), fields }));
  };
}

/** Changes what the bucket says. */
function lie(change: (answer: Answer, failing: Failing) => Answer): Happen {
  return async (failing) =>
    sendAnswer(failing.response, failing.request, change(await failing.answer(), failing));
}

function half({ content = '' }: Answer): Buffer {
  const octets = Buffer.from(content);
  return octets.subarray(0, Math.floor(octets.length / 2));
}

async function sendPart({ response, answer }: Failing): Promise<void> {
  const whole = await answer();
  for (const [name, value] of Object.entries(whole.fields ?? {}))
    if (value !== undefined) response.setHeader(name, value);
  response.writeHead(whole.status, { 'content-length': Buffer.from(whole.content ?? '').length });
  response.write(half(whole));
  await pause(20);
}

function damaged(octets: Buffer): Buffer {
  const copy = Buffer.from(octets);
  if (copy.length > 0) copy[copy.length >> 1] = (copy[copy.length >> 1] ?? 0) ^ 1;
  return copy;
}

const happenings = {
  'slow-down': refuse(503, 'SlowDown', { 'retry-after': '0' }),
  'internal-error': refuse(500, 'InternalError'),
  'access-denied': refuse(403, 'AccessDenied'),
  'no-bucket': refuse(404, 'NoSuchBucket'),
  'storage-full': refuse(507, 'XMinioStorageFull'),
  'not-found-page': ({ request, response }) => {
    request.resume();
    sendAnswer(response, request, { status: 404, content: errorPage });
  },
  /** A proxy answers in place of the bucket. */
  'error-page': ({ request, response }) => {
    request.resume();
    request.once('end', () => sendAnswer(response, request, { status: 200, content: errorPage }));
  },
  'error-after-200': lie(() => ({ ...xmlError(200, 'InternalError'), status: 200 })),
  /** The connection ends before there is an answer. */
  'cut-request': ({ request }) => {
    request.once('data', () => request.socket.destroy());
    request.once('end', () => request.socket.destroy());
    request.resume();
  },
  /** The bucket did what it was asked for, and its answer is lost. */
  'cut-answer': async ({ request, answer }) => {
    await answer();
    request.socket.destroy();
  },
  'cut-content': async (failing) => {
    await sendPart(failing);
    failing.request.socket.destroy();
  },
  'stall-content': (failing) => sendPart(failing),
  'stall-answer': ({ request }) => request.resume(),
  /** Slow, and never silent for long. */
  'slow-content': async (failing) => {
    const { response } = failing;
    const { status, fields = {}, content = '' } = await failing.answer();
    const octets = Buffer.from(content);
    for (const [name, value] of Object.entries(fields))
      if (value !== undefined) response.setHeader(name, value);
    response.writeHead(status, { 'content-length': octets.length });
    const step = Math.ceil(octets.length / 10);
    for (let at = 0; at < octets.length; at += step) {
      response.write(octets.subarray(at, at + step));
      await pause(60);
    }
    response.end();
  },
  'wrong-range': lie((answer) => {
    const [, first = '', last = '', total = ''] =
      /(\d+)-(\d+)\/(\d+)/.exec(answer.fields?.['content-range'] ?? '') ?? [];
    return {
      ...answer,
      fields: {
        ...answer.fields,
        'content-range': `bytes ${Number(first) + 1}-${Number(last) + 1}/${total}`,
      },
    };
  }),
  'no-range': lie((answer) => ({ ...answer, fields: { ...answer.fields, 'content-range': undefined } })),
  'whole-for-part': lie((_answer, { call, objects }) => ({
    status: 200,
    content: objects.get(call.key)?.octets ?? '',
  })),
  'longer-part': lie((answer) => ({
    ...answer,
    content: Buffer.concat([Buffer.from(answer.content ?? ''), Buffer.from('!')]),
  })),
  'gzip-coding': lie((answer) => ({ ...answer, fields: { ...answer.fields, 'content-encoding': 'gzip' } })),
  'other-octets': lie((answer) => ({ ...answer, content: damaged(Buffer.from(answer.content ?? '')) })),
  'other-checksum': lie((answer) => ({
    ...answer,
    fields: {
      ...answer.fields,
      'x-amz-checksum-sha256': createHash('sha256').update('other').digest('base64'),
    },
  })),
  'other-tag': lie((answer) => ({
    ...answer,
    fields: { ...answer.fields, etag: `"${'0'.repeat(32)}"`, 'x-amz-checksum-sha256': undefined },
  })),
  /** Keeps damaged octets, and says the tag of these. */
  'keep-damaged': async (failing) => {
    const { request, response, call, objects } = failing;
    await failing.answer();
    const octets = damaged(objects.get(call.key)?.octets ?? Buffer.alloc(0));
    const etag = `"${createHash('md5').update(octets).digest('hex')}"`;
    objects.set(call.key, { octets, etag, checksum: undefined });
    sendAnswer(response, request, { status: 200, fields: { etag } });
  },
} satisfies Readonly<Record<string, Happen>>;

export type FaultKind = keyof typeof happenings;
