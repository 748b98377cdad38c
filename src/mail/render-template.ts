/** A template with its values in place (config/mail-templates.ts). */
import type { MailTemplate, Piece } from '../config/mail-templates.ts';
import { suggestion } from '../config/nearest.ts';

export type MailValues = Readonly<Record<string, string | number>>;

export type RenderedMail = { readonly subject: string; readonly text: string; readonly html: string | null };

/** @param values must hold every value of the template; others are ignored */
export function renderTemplate(template: MailTemplate, values: MailValues): RenderedMail {
  const { subject, text, html } = template;
  const plain = (value: string): string => value;
  return {
    subject: fill(subject, values, plain),
    text: fill(text, values, plain),
    html: html === undefined ? null : fill(html, values, escapeHtml),
  };
}

/** The differences between the values of a template and those that are given, as predicates; empty: none. */
export function valueFaults({ name, values: needed }: MailTemplate, given: MailValues): readonly string[] {
  const missing = [...needed].filter((value) => !Object.hasOwn(given, value));
  const unknown = Object.keys(given).filter((value) => !needed.has(value));
  return [
    ...missing.map((value) => `lacks ${value}, which the template ${name} needs`),
    ...unknown.map(
      (value) => `has ${value}, which the template ${name} does not use${suggestion(value, needed)}`,
    ),
  ];
}

function fill(pieces: readonly Piece[], values: MailValues, write: (value: string) => string): string {
  return pieces
    .map((piece) => (typeof piece === 'string' ? piece : write(String(values[piece.value] ?? ''))))
    .join('');
}

const special = /[&<>"']/g;

/** For text and for quoted attributes. */
function escapeHtml(text: string): string {
  return text.replace(special, (character) => `&#${character.charCodeAt(0)};`);
}
