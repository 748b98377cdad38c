/** What was signed, of one message: the pieces of a rule's template with the message's parts in them, as octets that stay where they are. */
import { queryParameter, signedUrls } from './called-url.ts';
import { signedParameters } from './form-parameters.ts';
import { octetsOf } from './octets.ts';
import type { HeaderReader, SignedFields } from './read-signed-fields.ts';
import type { HmacRule } from './signature-rule.ts';
import type { SignedTemplate } from './signed-template.ts';

export type SignedMessage = {
  /** As it came. */
  readonly body: Uint8Array;
  readonly header: HeaderReader;
  /** Whole, as the sender called it: where `{url}` is signed. */
  readonly url?: string | undefined;
};

/** Octets that were signed one after the other. */
export type SignedContent = readonly Uint8Array[];

/**
 * By what the body is covered: it is signed itself, or its parameters are, or there is none, or its SHA-256 stands in the signed URL in
 * hexadecimal. Any other body beside a signed URL would be anybody's. The digest goes before the form, as it does at Twilio: a message with
 * one is none of the other kind because somebody says so in Content-Type, which is not signed.
 */
export type BodyCover = 'body' | 'form' | 'empty' | 'nothing' | { readonly sha256: string };

export function bodyCoverOf(rule: HmacRule, template: SignedTemplate, message: SignedMessage): BodyCover {
  if (!template.signsForm) return 'body';
  const { bodyDigestParameter: parameter } = rule;
  const sha256 = parameter === undefined ? undefined : queryParameter(message.url ?? '', parameter);
  if (sha256 !== undefined) return { sha256 };
  if (message.body.length === 0) return 'empty';
  return isForm(message.header) ? 'form' : 'nothing';
}

/**
 * Each content that the sender may have signed: more than one where `{url}` is written in two ways. None: nothing covers the body.
 * @throws TypeError where `{url}` is signed and the program did not give it
 */
export function signedContents(
  template: SignedTemplate,
  message: SignedMessage,
  fields: SignedFields,
  cover: BodyCover,
): readonly SignedContent[] | 'malformed' {
  if (template.signsUrl && message.url === undefined) {
    throw new TypeError('this sender signs the URL that it called: it must be given');
  }
  if (cover === 'nothing') return [];
  const octets = cover === 'form' ? signedParameters(message.body) : cover === 'body' ? [message.body] : [];
  if (octets === undefined) return 'malformed';
  if (!template.signsUrl) return [contentOf(template, fields, octets, '')];
  return signedUrls(message.url ?? '').map((url) => contentOf(template, fields, octets, url));
}

function contentOf(
  { pieces }: SignedTemplate,
  { timestampText, id }: SignedFields,
  octets: readonly Uint8Array[],
  url: string,
): SignedContent {
  const content: Uint8Array[] = [];
  let text = '';
  for (const piece of pieces) {
    if ('text' in piece) text += piece.text;
    else if (piece.part === 'timestamp') text += timestampText;
    else if (piece.part === 'id') text += id;
    else if (piece.part === 'url') text += url;
    else {
      if (text !== '') content.push(octetsOf(text));
      text = '';
      content.push(...octets);
    }
  }
  if (text !== '') content.push(octetsOf(text));
  return content;
}

function isForm(header: HeaderReader): boolean {
  const type = header('content-type');
  if (typeof type !== 'string') return false;
  const end = type.indexOf(';');
  const essence = end < 0 ? type : type.slice(0, end);
  return essence.trim().toLowerCase() === 'application/x-www-form-urlencoded';
}
