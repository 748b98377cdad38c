/**
 * Checks the files that a configuration declares: those of documents (`File({ ... })`) and those in the input of an action
 * (`upload({ ... })`).
 */
import { fileRule, MiB } from '../model/file.ts';
import { uploadRule } from '../model/logic/actions.ts';
import { type Inspection, isRecord, kindOf, suggestion } from './inspection.ts';

type Refuse = (predicate: string) => void;
type Schema = Readonly<Record<string, unknown>>;

const methods: ReadonlySet<unknown> = new Set(['POST', 'PUT', 'PATCH']);
const mediaRange = /^[a-z0-9!#$&^_.+-]+\/(?:\*|[a-z0-9!#$&^_.+-]+)$/;
const filesMax = 1000;
/** All files of a request together: as many octets as any setting allows for content. */
const bytesMax = 256 * MiB;

type RuleOf = (schema: unknown) => object | undefined;

/** The place of the first file of a kind within a schema, as a path of members; undefined: it has none. */
function fileWithin(schema: unknown, place: string, ruleOf: RuleOf): string | undefined {
  if (ruleOf(schema) !== undefined) return place;
  const parts = Array.isArray(schema) ? schema.entries() : isRecord(schema) ? Object.entries(schema) : [];
  for (const [name, part] of parts) {
    const found = fileWithin(part, name === 'properties' ? place : `${place}.${name}`, ruleOf);
    if (found !== undefined) return found;
  }
  return undefined;
}

const uploadWithin = (schema: unknown, place: string) => fileWithin(schema, place, uploadRule);

/** Refuses files that are no members of the collection, or lists that are, and rules that cannot be kept. */
export function inspectFiles({ declaration, refuse }: Inspection): void {
  const { schema, computed = {} } = declaration;
  const upload = uploadWithin(schema, 'schema');
  if (upload !== undefined)
    refuse(
      `${upload} is an upload, which only the input of an action takes; a collection declares File(...)`,
    );
  const { properties, ...rest } = schema as object as Schema;
  for (const [name, member] of Object.entries(properties as Schema)) {
    const place = `schema.${name}`;
    const items = isRecord(member) && member.type === 'array' ? member.items : undefined;
    const rule = fileRule(member) ?? fileRule(items);
    if (rule === undefined) {
      refuseFile(fileWithin(member, place, fileRule), refuse);
      continue;
    }
    if (Object.hasOwn(computed, name)) refuse(`computed.${name} is a file, which only clients send`);
    inspectName(name, declaration, refuse);
    inspectFileRule(rule, place, refuse);
    if (items !== undefined && !isCount((member as Schema).maxItems, filesMax))
      refuse(
        `${place} must have maxItems, a whole number from 1 to ${filesMax}, because it is a list of files`,
      );
  }
  refuseFile(fileWithin(rest, 'schema', fileRule), refuse);
}

const segment = /^[A-Za-z][A-Za-z0-9_-]*$/;
/** Paths below a document that the program itself serves. */
const memberPaths: ReadonlySet<string> = new Set(['history', 'restore']);

/** The octets of a field are at the path of its name below the document. */
function inspectName(
  name: string,
  { actions }: Pick<Inspection['declaration'], 'actions'>,
  refuse: Refuse,
): void {
  const place = `schema.${name}`;
  if (!segment.test(name))
    refuse(
      `${place} is a file, whose name is part of its URL: it starts with a letter and holds letters, digits, _ and -`,
    );
  if (memberPaths.has(name))
    refuse(`${place} is a file, and {document}/${name} is a path of Comity: choose another name`);
  const named: Readonly<Record<string, unknown>> = isRecord(actions) ? actions : {};
  for (const [action, declared] of Object.entries(named)) {
    if (!isRecord(declared) || declared.on !== 'member') continue;
    const path = typeof declared.path === 'string' ? declared.path : `/${action}`;
    if (path.split('/')[1] === name) refuse(`${place} is a file, and actions.${action} has its path`);
  }
}

function refuseFile(place: string | undefined, refuse: Refuse): void {
  if (place !== undefined)
    refuse(`${place} is a file: it must be a member of the collection, or the items of a list that is one`);
}

/** 1 TiB. */
const fileBytesMax = 1024 ** 4;
const previewsMax = 16;
const previewPixelsMax = 4096;
const previewName = /^[a-z][A-Za-z0-9_-]{0,31}$/;
const fits: ReadonlySet<unknown> = new Set(['cover', 'contain', 'inside']);
const formats: ReadonlySet<unknown> = new Set(['webp', 'jpeg', 'png', 'avif']);
const ruleMembers: ReadonlySet<string> = new Set(['bytesMax', 'types', 'previews']);

function inspectFileRule(rule: object, place: string, refuse: Refuse): void {
  const { bytesMax: bytes, types, previews } = rule as Schema;
  for (const name of Object.keys(rule))
    if (!ruleMembers.has(name))
      refuse(`${place}: File has the member "${name}"${suggestion(name, ruleMembers)}`);
  if (!isCount(bytes, fileBytesMax))
    refuse(`${place}: File needs bytesMax, a whole number from 1 to ${fileBytesMax}, not ${asJson(bytes)}`);
  if (types !== undefined) inspectMediaRanges(types, `${place}: types of File`, refuse);
  if (previews === undefined) return;
  if (!isRecord(previews)) {
    refuse(`${place}: previews of File must be an object, not ${kindOf(previews)}`);
    return;
  }
  if (Object.keys(previews).length > previewsMax)
    refuse(`${place}: File has more than ${previewsMax} previews`);
  for (const [name, preview] of Object.entries(previews))
    inspectPreview(name, preview, `${place}: previews.${name}`, refuse);
}

function inspectPreview(name: string, preview: unknown, place: string, refuse: Refuse): void {
  if (!previewName.test(name))
    refuse(
      `${place}: the name of a preview has at most 32 letters, digits, - and _, and starts with a small letter`,
    );
  if (!isRecord(preview)) {
    refuse(`${place} must be { width, height }, not ${kindOf(preview)}`);
    return;
  }
  const { width, height, fit, format, quality } = preview;
  for (const [member, pixels] of Object.entries({ width, height }))
    if (!isCount(pixels, previewPixelsMax))
      refuse(
        `${place}.${member} must be a whole number from 1 to ${previewPixelsMax} (pixels), not ${asJson(pixels)}`,
      );
  if (fit !== undefined && !fits.has(fit)) refuse(`${place}.fit must be 'cover', 'contain' or 'inside'`);
  if (format !== undefined && !formats.has(format))
    refuse(`${place}.format must be 'webp', 'jpeg', 'png' or 'avif'`);
  if (quality !== undefined && !isCount(quality, 100))
    refuse(`${place}.quality must be a whole number from 1 to 100`);
}

function isCount(value: unknown, most: number): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= most;
}

function inspectMediaRanges(types: unknown, place: string, refuse: Refuse): void {
  if (!Array.isArray(types) || types.length === 0) {
    refuse(`${place} must be a list of types such as image/png or image/*`);
    return;
  }
  for (const type of types)
    if (typeof type !== 'string' || !mediaRange.test(type))
      refuse(`${place} takes types such as image/png or image/*, not ${asJson(type)}`);
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
    if (isCount(count, filesMax)) bytes += count * upload.bytesMax;
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
  const { bytesMax: bytes, mediaTypes } = rule as Schema;
  if (!isCount(bytes, bytesMax))
    refuse(`${place}: upload needs bytesMax, a whole number from 1 to ${bytesMax}, not ${asJson(bytes)}`);
  if (mediaTypes !== undefined) inspectMediaRanges(mediaTypes, `${place}: mediaTypes of upload`, refuse);
}

function asJson(value: unknown): string {
  return JSON.stringify(value) ?? kindOf(value);
}
