/** Checks where files stand in the input of an action (model/logic/upload.ts), and their rules. No other schema may have any. */
import { uploadRule } from '../model/logic/upload.ts';
import { isRecord, kindOf } from './inspection.ts';

type Refuse = (predicate: string) => void;
type Schema = Readonly<Record<string, unknown>>;

const methods: ReadonlySet<unknown> = new Set(['POST', 'PUT', 'PATCH']);
const mediaRange = /^[a-z0-9!#$&^_.+-]+\/(?:\*|[a-z0-9!#$&^_.+-]+)$/;
const filesMax = 1000;
const megabyte = 1024 * 1024;
/** All files of a request together: as many octets as any setting allows for content. */
const bytesMax = 256 * megabyte;

/** The place of the first file within a schema, as a path of members; undefined: it has none. */
export function uploadWithin(schema: unknown, place: string): string | undefined {
  if (uploadRule(schema) !== undefined) return place;
  if (Array.isArray(schema)) return firstOf(schema.entries(), place);
  return isRecord(schema) ? firstOf(Object.entries(schema), place) : undefined;
}

function firstOf(parts: Iterable<readonly [string | number, unknown]>, place: string): string | undefined {
  for (const [name, part] of parts) {
    const found = uploadWithin(part, name === 'properties' ? place : `${place}.${name}`);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** @param input an object with properties */
export function inspectUploads(input: Schema, method: unknown, refuse: Refuse): void {
  let bytes = 0;
  const { properties, ...rest } = input;
  for (const [name, member] of Object.entries(properties as Schema)) {
    const place = `input.${name}`;
    const items = isRecord(member) && member.type === 'array' ? member.items : undefined;
    const upload = uploadRule(items ?? member);
    if (upload === undefined) {
      refuseElsewhere(uploadWithin(member, place), refuse);
      continue;
    }
    if (!methods.has(method)) refuse(`${place} is an upload, which only POST, PUT and PATCH take`);
    inspectRule(upload, place, refuse);
    const count = items === undefined ? 1 : (member as Schema).maxItems;
    if (typeof count === 'number' && Number.isInteger(count) && count >= 1 && count <= filesMax)
      bytes += count * upload.bytesMax;
    else
      refuse(
        `${place} must have maxItems, a whole number from 1 to ${filesMax}, because it is a list of uploads`,
      );
  }
  refuseElsewhere(uploadWithin(rest, 'input'), refuse);
  if (bytes > bytesMax)
    refuse(`input takes uploads of ${bytes} bytes together, and at most ${bytesMax} are possible`);
}

function refuseElsewhere(place: string | undefined, refuse: Refuse): void {
  if (place !== undefined)
    refuse(`${place} is an upload: it must be a member of the input, or the items of a list that is one`);
}

function inspectRule(rule: unknown, place: string, refuse: Refuse): void {
  const { bytesMax: bytes, mediaTypes = ['*'] } = rule as Schema;
  if (typeof bytes !== 'number' || !Number.isInteger(bytes) || bytes < 1 || bytes > bytesMax)
    refuse(`${place}: upload needs bytesMax, a whole number from 1 to ${bytesMax}, not ${shown(bytes)}`);
  if (!Array.isArray(mediaTypes) || mediaTypes.length === 0)
    refuse(`${place}: mediaTypes of upload must be a list of types such as image/png or image/*`);
  else {
    for (const type of (rule as Schema).mediaTypes === undefined ? [] : mediaTypes) {
      if (typeof type !== 'string' || !mediaRange.test(type))
        refuse(`${place}: mediaTypes of upload takes types such as image/png or image/*, not ${shown(type)}`);
    }
  }
}

function shown(value: unknown): string {
  return JSON.stringify(value) ?? kindOf(value);
}
