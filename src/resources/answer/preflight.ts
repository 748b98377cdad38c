/**
 * A cross-origin preflight (§4.8; Fetch, CORS preflight): answered without a credential, because browsers send none.
 * An origin that is not allowed gets the plain answer without CORS fields, which the browser takes as a no.
 */
import type { Response } from '../../http/message.ts';
import type { Room } from '../room.ts';
import { allowedOrigin, allowedRequestFields, allowingFields } from './cors.ts';
import type { Ended } from './ended.ts';
import { allowedMethods } from './options.ts';

export function preflightResponse(status: number, room: Room, ended: Ended): Response {
  const methods = allowedMethods(ended).join(', ');
  const allowed = allowedOrigin(room.cors, ended.request.fields.origin);
  const fields = ['Allow', methods];
  if (room.cors.enabled) {
    fields.push('Vary', 'Origin, Access-Control-Request-Method, Access-Control-Request-Headers');
  }
  if (allowed !== undefined) {
    fields.push(
      ...allowingFields(room.cors, allowed),
      'Access-Control-Allow-Methods',
      methods,
      'Access-Control-Allow-Headers',
      allowedRequestFields,
      'Access-Control-Max-Age',
      String(room.cors.maxAgeSeconds),
    );
  }
  return { status, fields, content: null };
}
