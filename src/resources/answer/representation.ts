/**
 * 200 with the selected representation (§4.2), under the content coding that Accept-Encoding prefers, and 303 to it
 * where it lies elsewhere (§4.12). A strong entity tag goes with each coding of its own.
 */
import type { Response } from '../../http/message.ts';
import { formatPreferenceApplied } from '../../http/syntax/prefer.ts';
import type { MaybePromise } from '../../store/store.ts';
import type { Representation } from '../resource.ts';
import type { Room } from '../room.ts';
import { entityTag } from '../validators.ts';
import { chooseCoding, encode } from './encode.ts';
import type { Ended } from './ended.ts';
import { lastModified } from './last-modified.ts';

export function representationResponse(status: number, room: Room, ended: Ended): MaybePromise<Response> {
  const { operation } = ended.reading;
  const { ask, standing } = ended;
  if (operation?.represent === undefined || ask === undefined || standing === undefined) {
    throw new Error('a read without a representation');
  }
  const representation = operation.represent(ask, standing, ended.proposal);
  return representation instanceof Promise
    ? representation.then((found) => encoded(status, room, ended, found))
    : encoded(status, room, ended, representation);
}

export function seeOtherResponse(status: number, ended: Ended): Response {
  const { standing, proposal } = ended;
  const location = proposal?.elsewhere ?? standing?.elsewhere ?? '';
  const fields = ['Location', location, 'Cache-Control', 'no-store', ...(proposal?.elsewhereFields ?? [])];
  return { status, fields, content: null };
}

function encoded(
  status: number,
  room: Room,
  ended: Ended,
  representation: Representation,
): MaybePromise<Response> {
  const { content, cacheControl } = representation;
  // What must not be transformed on its way (RFC 9111 §5.2.2.6) is not transformed here: it may bear a coding already.
  if (content.length < room.limits.compressionBytesMin || cacheControl.includes('no-transform')) {
    return { status, fields: fieldsOf(room, representation), content };
  }
  const coding = chooseCoding(ended.request.fields.acceptEncoding);
  // The content, and what comes of it; where there is no memory for both, it goes as it is.
  const hasRoom = coding !== 'identity' && ended.request.memory?.hold(2 * content.length) !== false;
  if (coding === 'identity' || !hasRoom) {
    return { status, fields: fieldsOf(room, representation), content };
  }
  const { tag } = representation.validators;
  const fields = [
    ...fieldsOf(room, { ...representation, validators: { ...representation.validators, tag: null } }),
    'Content-Encoding',
    coding,
    ...(tag === null ? [] : ['ETag', entityTag(tag, coding)]),
  ];
  return encode(content, coding).then((bytes) => ({ status, fields, content: bytes }));
}

function fieldsOf(room: Room, representation: Representation): string[] {
  const { tag, modifiedAt } = representation.validators;
  const { mediaType, cacheControl } = representation;
  // Every representation is sent whole, and a client need not try (RFC 9110 §14.3).
  const fields = [
    'Content-Type',
    mediaType,
    'Cache-Control',
    cacheControl,
    'Vary',
    'Accept, Accept-Encoding',
    'Accept-Ranges',
    'none',
  ];
  if (tag !== null) fields.push('ETag', `"${tag}"`);
  if (modifiedAt !== null) fields.push('Last-Modified', lastModified(room, modifiedAt));
  if (representation.fields !== undefined) fields.push(...representation.fields);
  if (representation.preferencesApplied !== undefined) {
    fields.push('Preference-Applied', formatPreferenceApplied(representation.preferencesApplied));
  }
  return fields;
}
