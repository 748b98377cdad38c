/** Checks how a collection behaves: its switches, body formats, caching and deprecation. */
import type { BodyFormat } from '../model/collection.ts';
import { type Inspection, isRecord, kindOf, listed } from './inspection.ts';

const bodyFormats: ReadonlySet<unknown> = new Set<BodyFormat>(['json', 'form', 'multipart', 'text']);
const switches = ['conceal', 'putCreates', 'softDelete', 'requireMatch'] as const;
const texts = ['description', 'textField', 'cacheControl'] as const;
const fieldValue = /^[\x21-\x7e]+(?: [\x21-\x7e]+)*$/;
const isoTime = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?Z)?$/;
const unsafeInLink = /[<>" ]/;
const webScheme = /^https?:/;

export function inspectConduct(inspection: Inspection): void {
  const { declaration, refuse } = inspection;
  for (const name of switches) {
    const value: unknown = declaration[name];
    if (value !== undefined && typeof value !== 'boolean')
      refuse(`${name} must be true or false, not ${kindOf(value)}`);
  }
  for (const name of texts) {
    const value: unknown = declaration[name];
    if (value !== undefined && typeof value !== 'string')
      refuse(`${name} must be a string, not ${kindOf(value)}`);
  }
  inspectFormats(inspection);
  const { cacheControl } = declaration;
  if (typeof cacheControl === 'string' && !fieldValue.test(cacheControl)) {
    refuse('cacheControl must be a value of Cache-Control, such as "max-age=60"');
  }
  inspectDeprecation(inspection);
}

function inspectFormats(inspection: Inspection): void {
  const { declaration, fields, refuse } = inspection;
  const formats = listed(inspection, 'formats', declaration.formats);
  if (declaration.formats !== undefined && formats.length === 0)
    refuse('formats must name at least one body format');
  for (const format of formats) {
    if (!bodyFormats.has(format))
      refuse(`formats holds ${quoted(format)}; the formats are json, form, multipart and text`);
  }
  const { textField } = declaration;
  const takesText = formats.includes('text');
  if (textField === undefined) {
    if (takesText) refuse('formats holds "text", which needs textField to say which field the text becomes');
    return;
  }
  if (!takesText) refuse(`textField is "${textField}", which needs "text" among the formats`);
  const field = fields.get(textField);
  if (field === undefined) {
    refuse(`textField names "${textField}", which is not a field`);
    return;
  }
  if (field.type !== 'string' || field.column !== undefined || field.path.length > 1) {
    refuse(`textField names "${textField}", which is not a string that clients write`);
  }
  const others = requiredOf(inspection).filter((name) => name !== textField);
  if (others.length > 0) {
    refuse(
      `a text body sets only "${textField}", and "${others[0]}" is required too: make it optional or leave text out of formats`,
    );
  }
}

function inspectDeprecation({ declaration, refuse }: Inspection): void {
  const deprecation: unknown = declaration.deprecation;
  if (deprecation === undefined) return;
  if (!isRecord(deprecation)) {
    refuse(`deprecation must be an object, not ${kindOf(deprecation)}`);
    return;
  }
  const since = timeOf(deprecation.since);
  if (since === undefined)
    refuse('deprecation.since must be an ISO 8601 UTC time such as 2027-01-31T00:00:00Z');
  if (deprecation.sunset !== undefined) {
    const sunset = timeOf(deprecation.sunset);
    if (sunset === undefined)
      refuse('deprecation.sunset must be an ISO 8601 UTC time such as 2027-01-31T00:00:00Z');
    else if (since !== undefined && sunset < since)
      refuse('deprecation.sunset must not be before deprecation.since');
  }
  const { link } = deprecation as { link?: unknown };
  if (link !== undefined && !isLink(link)) refuse('deprecation.link must be an http or https URL, or a path');
}

function timeOf(value: unknown): number | undefined {
  if (typeof value !== 'string' || !isoTime.test(value)) return undefined;
  const ms = Date.parse(value);
  return Number.isNaN(ms) ? undefined : ms;
}

function isLink(value: unknown): boolean {
  if (typeof value !== 'string' || !fieldValue.test(value) || unsafeInLink.test(value)) return false;
  return value.startsWith('/') || (webScheme.test(value) && URL.canParse(value));
}

function requiredOf({ declaration }: Inspection): readonly string[] {
  const required: unknown = declaration.schema.required;
  return Array.isArray(required) ? required.filter((name) => typeof name === 'string') : [];
}

function quoted(value: unknown): string {
  return typeof value === 'string' ? `"${value}"` : kindOf(value);
}
