/**
 * 202 (§4.1, RFC 7240 §4.1): the request is stored durably and carried out after the answer.
 */
import type { Response } from '../../http/message.ts';
import { formatPreferenceApplied } from '../../http/syntax/prefer.ts';
import type { Room } from '../room.ts';
import type { Ended } from './ended.ts';

export async function acceptedResponse(status: number, room: Room, ended: Ended): Promise<Response> {
  if (ended.ask === undefined) throw new Error('an asynchronous answer without a request');
  const operation = await room.operations.accept(ended.ask, ended.bytes);
  return {
    status,
    fields: [
      'Location',
      operation.location,
      'Content-Type',
      'application/json',
      'Cache-Control',
      'no-store',
      'Preference-Applied',
      formatPreferenceApplied([['respond-async', '']]),
    ],
    content: operation.doc,
  };
}
