/**
 * The Content-Disposition of a part of multipart/form-data: RFC 7578 §4.2, as browsers and curl write it.
 * Inside quotes a backslash escapes a quote or a backslash only: browsers send others as they stand.
 */
import { decodeText } from './text.ts';

export type Disposition = { readonly name: string; readonly isFile: boolean };

/** Reads the field, whose octets come as Latin-1; undefined when it is not `form-data` with one UTF-8 name. */
export function parseDisposition(value: string): Disposition | undefined {
  const semicolon = value.indexOf(';');
  if (semicolon === -1 || value.slice(0, semicolon).trim().toLowerCase() !== 'form-data') return undefined;
  let name: string | undefined;
  let isFile = false;
  let at = semicolon;
  while (at < value.length) {
    const parameter = readParameter(value, at + 1);
    if (parameter === undefined) return undefined;
    if (parameter.name === 'name') {
      if (name !== undefined) return undefined;
      name = parameter.value;
    } else if (parameter.name === 'filename' || parameter.name === 'filename*') isFile = true;
    at = parameter.end;
  }
  const decoded = name === undefined ? undefined : decodeText(Buffer.from(name, 'latin1'));
  return decoded === undefined ? undefined : { name: decoded, isFile };
}

type Parameter = { readonly name: string; readonly value: string; readonly end: number };

/** The parameter after a semicolon; `end` is the index of the next semicolon or the length of the text. */
function readParameter(text: string, from: number): Parameter | undefined {
  const equals = text.indexOf('=', from);
  if (equals === -1) return undefined;
  const name = text.slice(from, equals).trim().toLowerCase();
  if (name === '' || name.includes(';') || name.includes('"')) return undefined;
  const start = skipSpaces(text, equals + 1);
  if (text.charCodeAt(start) !== 0x22) {
    const semicolon = text.indexOf(';', start);
    const end = semicolon === -1 ? text.length : semicolon;
    const value = text.slice(start, end).trim();
    return value.includes('"') ? undefined : { name, value, end };
  }
  let value = '';
  let at = start + 1;
  for (; ; at += 1) {
    if (at >= text.length) return undefined;
    const character = text.charAt(at);
    if (character === '"') break;
    const next = text.charAt(at + 1);
    if (character === '\\' && (next === '"' || next === '\\')) at += 1;
    value += text.charAt(at);
  }
  const end = skipSpaces(text, at + 1);
  return end === text.length || text.charCodeAt(end) === 0x3b ? { name, value, end } : undefined;
}

function skipSpaces(text: string, from: number): number {
  let at = from;
  while (text.charCodeAt(at) === 0x20 || text.charCodeAt(at) === 0x09) at += 1;
  return at;
}
