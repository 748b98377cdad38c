/**
 * Octets that a handler returns for `output.bytes()`, alone or with what the handler alone knows of them, which replaces what the
 * declaration says; and the header fields of an output. With a validator the octets are a representation like a file: conditional requests
 * and ranges apply to it.
 */

import type { DeclaredAction } from '../../config/actions.ts';
import { isFileName, isMediaType, isOwnOutput } from '../../config/actions.ts';
import { formatContentDisposition } from '../../http/syntax/content-disposition.ts';
import { httpDateMsMax, httpDateMsMin } from '../../http/syntax/http-date.ts';
import type { Validators } from '../../kernel/resource.ts';
import type { Output, OutputBytes } from '../../model/logic/actions.ts';
import { FunctionFailed } from '../function-failed.ts';

/** The parts of a response that octets determine. */
export type GivenOctets = {
  readonly content: Uint8Array;
  readonly media: { readonly type: string };
  /** Absent: those of the declaration. */
  readonly fields?: readonly string[];
  readonly validators?: Validators;
};

type Reading = {
  /** The action, for sentences. */
  readonly named: string;
  /** Its method is GET or QUERY: what it returns is a representation. */
  readonly safe: boolean;
  /** A value by its kind, for sentences. */
  readonly shown: (value: unknown) => string;
};

/** Octets are served again only after the handler ran again: a cache asks each time. */
export const octetsCacheControl = 'private, no-cache';

/** @throws FunctionFailed */
export function readOctets(value: unknown, declared: Output, reading: Reading): GivenOctets {
  if (value instanceof Uint8Array) return { content: value, media: { type: declared.mediaType } };
  const { named, safe, shown } = reading;
  const fail = (what: string): FunctionFailed => new FunctionFailed(`${named} must return ${what}`);
  if (typeof value !== 'object' || value === null || !('bytes' in value)) {
    const returned = typeof value === 'object' && value !== null ? 'one without' : shown(value);
    throw fail(`a Uint8Array or an object with bytes, and returned ${returned}`);
  }
  const unheard = Object.keys(value).find((name) => !members.has(name));
  if (unheard !== undefined) {
    throw fail(`an object with ${[...members].join(', ')}, and returned one with ${JSON.stringify(unheard)}`);
  }
  const {
    bytes,
    mediaType = declared.mediaType,
    fileName = declared.fileName,
    etag,
    lastModified,
  } = value as { readonly [M in keyof OutputBytes]: unknown };
  if (!(bytes instanceof Uint8Array)) throw fail(`bytes as a Uint8Array, and returned ${shown(bytes)}`);
  if (!isMediaType(mediaType)) throw fail(`mediaType as text/csv is one, not ${quoted(mediaType, shown)}`);
  if (fileName !== undefined && !isFileName(fileName)) {
    throw fail(`fileName as the name of a file, not ${quoted(fileName, shown)}`);
  }
  if (etag !== undefined && !isTag(etag)) {
    throw fail(
      `etag as 1 to ${tagCharactersMax} visible ASCII characters without quotes, not ${quoted(etag, shown)}`,
    );
  }
  if (lastModified !== undefined && !isHttpDate(lastModified)) {
    throw fail(`lastModified as a Date in the years 0 to 9999, not ${quoted(lastModified, shown)}`);
  }
  const hasValidators = etag !== undefined || lastModified !== undefined;
  if (hasValidators && !safe) {
    throw fail(
      'etag and lastModified with GET and QUERY alone: the answer to another method is no representation',
    );
  }
  return {
    content: bytes,
    media: { type: mediaType },
    fields: outputFields({ ...declared, mediaType, fileName }),
    ...(hasValidators
      ? {
          validators: {
            tag: etag ?? null,
            modifiedAt: lastModified?.getTime() ?? null,
            cacheControl: octetsCacheControl,
          },
        }
      : {}),
  };
}

const members: ReadonlySet<string> = new Set<keyof OutputBytes>([
  ...(['bytes', 'mediaType', 'fileName', 'etag', 'lastModified'] as const),
]);

const tagCharactersMax = 255;
const tag = /^[\x21\x23-\x7e]+$/;

function isTag(value: unknown): value is string {
  return typeof value === 'string' && value.length <= tagCharactersMax && tag.test(value);
}

function isHttpDate(value: unknown): value is Date {
  if (!(value instanceof Date)) return false;
  const ms = value.getTime();
  return ms >= httpDateMsMin && ms <= httpDateMsMax;
}

const shownCharactersMax = 100;

function quoted(value: unknown, shown: (value: unknown) => string): string {
  return typeof value === 'string' ? JSON.stringify(value.slice(0, shownCharactersMax)) : shown(value);
}

/** The fields that the output of an action has besides those of its content. */
export function fieldsOf({ output }: Pick<DeclaredAction, 'output'>): readonly string[] {
  return output === undefined || !isOwnOutput(output) ? [] : outputFields(output);
}

/**
 * Content that browsers run has an origin of its own unless the declaration has another policy: in that of the program, its scripts would
 * act with the cookies of the one who opens it, and read what the dashboard holds.
 */
function outputFields({ kind, securityPolicy, mediaType, fileName }: Output): readonly string[] {
  const policy = securityPolicy ?? (runs.test(mediaType) ? 'sandbox' : undefined);
  return [
    // Clients read these types as text and values.
    ...(kind === 'bytes' && readable.test(mediaType) ? ['Comity-Content', 'octets'] : []),
    ...(policy === undefined ? [] : ['Content-Security-Policy', policy]),
    ...(fileName === undefined
      ? []
      : ['Content-Disposition', formatContentDisposition('attachment', fileName)]),
  ];
}

const readable = /^\s*(?:text\/|application\/(?:[^;]*\+)?json\b)/i;

/** HTML, and XML of any vocabulary, of which XHTML and SVG have scripts. */
const runs = /^\s*(?:text\/html|[^;]*[/+]xml)\s*(?:;|$)/i;
