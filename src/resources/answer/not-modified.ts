/**
 * 304 (RFC 9110 §15.4.5): the fields that the 200 would have had of ETag, Cache-Control, Vary, Content-Location, and no content.
 */
import type { Response } from '../../http/message.ts';
import type { RequestFields } from '../../http/request-fields.ts';
import { formatEntityTag } from '../../http/syntax/entity-tag.ts';
import { heldTag } from '../preconditions.ts';
import type { Room } from '../room.ts';
import { entityTag } from '../validators.ts';
import type { Ended } from './ended.ts';
import { lastModified } from './last-modified.ts';

export function notModifiedResponse(status: number, room: Room, ended: Ended): Response {
  const validators = ended.validators;
  const fields = ['Vary', 'Accept, Accept-Encoding'];
  if (validators === undefined) return { status, fields, content: null };
  if (validators.tag !== null) fields.push('ETag', matchedTag(ended.request.fields, validators.tag));
  if (validators.modifiedAt !== null) fields.push('Last-Modified', lastModified(room, validators.modifiedAt));
  if (validators.cacheControl !== undefined) fields.push('Cache-Control', validators.cacheControl);
  if (validators.fields !== undefined) fields.push(...validators.fields);
  return { status, fields, content: null };
}

/** The tag that the client holds, which a 200 carried with its content coding. */
function matchedTag(fields: RequestFields, tag: string): string {
  const plain = entityTag(tag, 'identity');
  if (fields.ifNoneMatch === undefined || fields.ifNoneMatch === plain) return plain;
  const held = heldTag(fields, tag);
  return held === undefined ? plain : formatEntityTag({ weak: false, opaque: held.opaque });
}
