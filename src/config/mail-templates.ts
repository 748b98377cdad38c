/**
 * `mail` of a configuration: the folder of templates, which are read and checked at start, and the retry schedule of mails. A template is
 * `NAME.txt` (a line `Subject: ...`, an empty line, the text) and optionally `NAME.html`. `{{value}}` stands for a value. A template with
 * the name of a mail that Comity sends by itself replaces that mail.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Type } from 'typebox';
import { suggestion } from './inspection.ts';
import { inspectShape, type Reporter, textThat } from './shape.ts';
import { fullScheduleShape } from './webhook-schedules.ts';

export type MailDeclaration = {
  /** Folder of the templates, relative to the configuration file. */
  readonly templates?: string;
  /** Seconds from each failed attempt to the next. The last entry repeats until `mailAttemptsMax` attempts were made. */
  readonly schedule?: readonly number[];
};

/** Literal text, or the name of a value. */
export type Piece = string | { readonly value: string };

export type MailTemplate = {
  readonly name: string;
  readonly subject: readonly Piece[];
  readonly text: readonly Piece[];
  readonly html: readonly Piece[] | undefined;
  /** The names of all its values. */
  readonly values: ReadonlySet<string>;
};

export type DeclaredMail = {
  readonly templates: ReadonlyMap<string, MailTemplate>;
  readonly schedule: readonly number[];
  /** True if the configuration has the member `mail`. */
  readonly isDeclared: boolean;
};

type AccountMail = { readonly values: readonly string[]; readonly needsOneOf: readonly string[] };

/** The mails that Comity sends by itself, with the values of each; a template must use one of `needsOneOf`. */
export const accountMails: Readonly<Record<string, AccountMail>> = {
  'verify-email': { values: ['title', 'email', 'code', 'link', 'validFor'], needsOneOf: ['code', 'link'] },
  'reset-password': { values: ['title', 'email', 'code', 'link', 'validFor'], needsOneOf: ['code', 'link'] },
  'email-changed': { values: ['title', 'email', 'code', 'link', 'validFor'], needsOneOf: ['code', 'link'] },
  invitation: { values: ['title', 'email', 'code', 'link', 'validFor'], needsOneOf: ['code', 'link'] },
  'login-code': { values: ['title', 'email', 'code', 'validFor'], needsOneOf: ['code'] },
  'login-link': { values: ['title', 'email', 'code', 'link', 'validFor'], needsOneOf: ['code', 'link'] },
  'endpoint-failing': { values: ['title', 'endpoint', 'origin', 'since', 'disabledAfter'], needsOneOf: [] },
  'endpoint-disabled': { values: ['title', 'endpoint', 'origin', 'since'], needsOneOf: [] },
  'second-factor-changed': { values: ['title', 'change', 'at'], needsOneOf: ['change'] },
  'endpoint-gone': { values: ['title', 'endpoint', 'origin', 'since'], needsOneOf: [] },
};

const minuteS = 60;
const hourS = 3600;

export const mailScheduleDefault: readonly number[] = [
  ...[10, minuteS, 5 * minuteS, 30 * minuteS],
  ...[2 * hourS, 5 * hourS, 10 * hourS],
];

const filesMax = 500;
const fileBytesMax = 256 * 1024;
const mailShape = Type.Object(
  {
    schedule: Type.Optional(fullScheduleShape),
    templates: Type.Optional(
      textThat((path) => path !== '', {
        must: 'must be the path of a folder, such as ./mails',
        shows: 'kind',
      }),
    ),
  },
  { calls: 'member of the configuration' },
);
const fileName = /^([a-z0-9][a-z0-9-]{0,63})\.(txt|html)$/;
const placeholder = /\{\{\s*([A-Za-z][A-Za-z0-9_]{0,63})\s*\}\}/g;
const lineBreaks = /\r\n?/g;
const subjectLine = /^Subject:[ \t]*(\S[^\n]*)$/;

/**
 * @param written the member `mail` of a configuration
 * @param module of the configuration
 * @param mistakes receives a sentence for each mistake; the result is then unusable
 */
export function inspectMail(written: unknown, module: URL | undefined, mistakes: string[]): DeclaredMail {
  const report: Reporter = (sentence) => void mistakes.push(sentence);
  const sound = written === undefined ? {} : inspectShape(mailShape, written, 'mail', report);
  const { templates, schedule = mailScheduleDefault } = sound ?? {};
  return {
    templates:
      templates === undefined ? new Map() : readTemplates(resolve(folderOf(module), templates), mistakes),
    schedule,
    isDeclared: written !== undefined,
  };
}

function folderOf(module: URL | undefined): string {
  return module === undefined ? '.' : fileURLToPath(new URL('.', module));
}

function readTemplates(folder: string, mistakes: string[]): ReadonlyMap<string, MailTemplate> {
  const files = listFiles(folder, mistakes);
  const templates = new Map<string, MailTemplate>();
  for (const file of files) {
    const [, name = '', kind] = fileName.exec(file) ?? [];
    if (kind === 'html' && !files.includes(`${name}.txt`))
      mistakes.push(
        `mail template ${file} has no ${name}.txt beside it, which holds the subject and the text`,
      );
    if (kind !== 'txt') continue;
    const text = readTemplate(folder, file, mistakes);
    const html = files.includes(`${name}.html`) ? readTemplate(folder, `${name}.html`, mistakes) : undefined;
    const template = text === undefined ? undefined : parseTemplate(name, text, html, mistakes);
    if (template !== undefined) templates.set(name, template);
  }
  return templates;
}

/** Hidden files, such as those of editors, and folders are ignored. */
function listFiles(folder: string, mistakes: string[]): readonly string[] {
  try {
    const entries = readdirSync(folder, { withFileTypes: true });
    const files = entries.filter((entry) => !entry.name.startsWith('.') && !entry.isDirectory());
    if (files.length > filesMax) {
      mistakes.push(`mail.templates: ${folder} holds ${files.length} files; at most ${filesMax} are read`);
      return [];
    }
    const names = files.map(({ name }) => name).sort();
    for (const name of names.filter((each) => !fileName.test(each))) {
      mistakes.push(
        `mail template ${name}: the name must be lower-case letters, digits and hyphens, with the ending .txt or .html`,
      );
    }
    return names.filter((each) => fileName.test(each));
  } catch (error) {
    mistakes.push(`mail.templates: the folder ${folder} cannot be read: ${messageOf(error)}`);
    return [];
  }
}

function readTemplate(folder: string, file: string, mistakes: string[]): string | undefined {
  const path = join(folder, file);
  try {
    const status = statSync(path);
    // The read of a pipe would never end.
    if (!status.isFile()) mistakes.push(`mail template ${file} is not a file`);
    else if (status.size > fileBytesMax)
      mistakes.push(`mail template ${file} has ${status.size} octets; at most ${fileBytesMax} are allowed`);
    else
      return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path)).replace(lineBreaks, '\n');
  } catch (error) {
    const why = error instanceof TypeError ? 'it is not UTF-8' : messageOf(error);
    mistakes.push(`mail template ${file} cannot be read: ${why}`);
  }
  return undefined;
}

/**
 * @param source the text of NAME.txt, with LF as line breaks
 * @returns undefined if it has mistakes
 */
export function parseTemplate(
  name: string,
  source: string,
  html: string | undefined,
  mistakes: string[],
): MailTemplate | undefined {
  const before = mistakes.length;
  const [first = '', second, ...lines] = source.split('\n');
  const [, subject] = subjectLine.exec(first.trimEnd()) ?? [];
  if (subject === undefined) mistakes.push(`mail template ${name}.txt:1 must be "Subject: " and the subject`);
  if (second !== undefined && second.trim() !== '')
    mistakes.push(`mail template ${name}.txt:2 must be empty; the text begins on the line after it`);
  const text = lines.join('\n');
  if (text.trim() === '') mistakes.push(`mail template ${name}.txt has no text`);
  const values = new Set<string>();
  const pieces = (file: string, part: string, line: number): readonly Piece[] =>
    piecesOf(part, (value) => void values.add(value), {
      refuse: (at) =>
        void mistakes.push(
          `mail template ${file}:${line + at} has braces that are no value; write a value as {{name}}`,
        ),
    });
  const template = {
    name,
    subject: pieces(`${name}.txt`, subject ?? '', 1),
    text: pieces(`${name}.txt`, text, 3),
    html: html === undefined ? undefined : pieces(`${name}.html`, html, 1),
    values,
  };
  checkAccountMail(template, mistakes);
  return mistakes.length > before ? undefined : template;
}

function piecesOf(
  source: string,
  found: (value: string) => void,
  { refuse }: { readonly refuse: (line: number) => void },
): readonly Piece[] {
  const pieces: Piece[] = [];
  let end = 0;
  const literal = (text: string): void => {
    const braces = text.indexOf('{{');
    if (braces >= 0) refuse(source.slice(0, end + braces).split('\n').length - 1);
    if (text !== '') pieces.push(text);
  };
  for (const match of source.matchAll(placeholder)) {
    literal(source.slice(end, match.index));
    const value = match[1] ?? '';
    found(value);
    pieces.push({ value });
    end = match.index + match[0].length;
  }
  literal(source.slice(end));
  return pieces;
}

function checkAccountMail({ name, text, html, values }: MailTemplate, mistakes: string[]): void {
  const known = Object.hasOwn(accountMails, name) ? accountMails[name] : undefined;
  if (known === undefined) return;
  for (const value of values) {
    if (known.values.includes(value)) continue;
    const all = known.values.join(', ');
    mistakes.push(
      `mail template ${name} uses {{${value}}}; its values are ${all}${suggestion(value, known.values)}`,
    );
  }
  for (const [ending, pieces] of [
    ['txt', text],
    ['html', html],
  ] as const) {
    const uses = (pieces ?? []).some(
      (piece) => typeof piece !== 'string' && known.needsOneOf.includes(piece.value),
    );
    if (pieces !== undefined && known.needsOneOf.length > 0 && !uses)
      mistakes.push(
        `mail template ${name}.${ending} must use ${known.needsOneOf.map((value) => `{{${value}}}`).join(' or ')}`,
      );
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
