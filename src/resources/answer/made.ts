/**
 * Answers after a change that was made: 201 with Location (§4.4.2, §4.5.3), 200 with the representation or 204 without
 * (§4.5, §4.6, §4.7), and 303 after a browser form (§4.12).
 */
import type { Response } from '../../http/message.ts';
import { formatPreferenceApplied } from '../../http/syntax/prefer.ts';
import type { Made } from '../resource.ts';
import type { Room } from '../room.ts';
import type { Ended } from './ended.ts';
import { lastModified } from './last-modified.ts';

export function madeResponse(status: number, room: Room, ended: Ended): Response {
  const { made, rev } = resultOf(ended);
  const applied = preferencesApplied(ended);
  const fields: string[] = [];
  if ((made.created || made.queued === true) && made.location !== null)
    fields.push('Location', made.location);
  if (made.validated && made.location !== null) {
    fields.push('ETag', `"${rev}"`);
    if (made.modifiedAt !== null) fields.push('Last-Modified', lastModified(room, made.modifiedAt));
  }
  const minimal = ended.reading.facts.minimalAsked || made.doc === null;
  if (!minimal) {
    fields.push('Content-Type', 'application/json', 'Cache-Control', 'no-store');
    const reports = ended.reading.operation?.reports === true;
    if (made.location !== null && !reports) fields.push('Content-Location', made.location);
  }
  if (made.fields !== undefined) fields.push(...made.fields);
  return { status, fields: [...fields, ...applied], content: minimal ? null : made.doc };
}

/** §4.7: nothing, or what was deleted. */
export function deletedResponse(status: number, ended: Ended): Response {
  const { made } = resultOf(ended);
  const applied = preferencesApplied(ended);
  if (status === 204 || made.doc === null) return { status, fields: applied, content: null };
  return {
    status,
    fields: ['Content-Type', 'application/json', 'Cache-Control', 'no-store', ...applied],
    content: made.doc,
  };
}

/** Post, redirect, get: reloading the page repeats only the GET. */
export function seeOtherAfterForm(status: number, ended: Ended): Response {
  const { made } = resultOf(ended);
  return {
    status,
    fields: ['Location', made.location ?? '', 'Cache-Control', 'no-store'],
    content: null,
  };
}

function preferencesApplied(ended: Ended): readonly string[] {
  const { operation, preferences } = ended.reading;
  const wanted = operation?.reports === true ? undefined : preferences.return;
  return wanted === undefined ? [] : ['Preference-Applied', formatPreferenceApplied([['return', wanted]])];
}

function resultOf(ended: Ended): { readonly made: Made; readonly rev: number } {
  if (ended.made === undefined) throw new Error('an answer to a change without its result');
  return ended.made;
}
