/**
 * Why a signature may not fit although the sender is genuine: the body is not the one that travelled. A guess for whoever sets a receiver up,
 * made of a refused message only. It is for a log: the sender is not told.
 */
import { fieldText, type Message } from './message.ts';
import type { Given } from './raw-body.ts';

/** Longer texts are not parsed for a guess. */
const jsonCharactersMax = 1024 * 1024;

/**
 * @param given as what the body came here, `text` if that is it
 * @returns a sentence or two; undefined: nothing speaks against the body
 */
export function likelyCause(
  message: Message,
  given: { readonly as: Given; readonly text: string },
): string | undefined {
  if (given.as === 'nothing') return 'No body was given, and the signature is over one: pass the raw body.';
  return (
    causeInLength(message, given.text) ?? (given.as === 'text' ? causeInText(message, given.text) : undefined)
  );
}

function causeInLength(message: Message, text: string): string | undefined {
  const declared = fieldText(message, 'content-length');
  const length = message.body.length;
  if (declared === undefined || Number(declared) === length) return undefined;
  const lengths = `The body that was given has ${length} octets, and the request had ${declared}`;
  if (fieldText(message, 'content-encoding') !== undefined) {
    return `${lengths}: its content coding was taken off, and the signature is over what travelled. With express.raw say inflate: false.`;
  }
  if (isBase64Of(text, Number(declared))) {
    return `${lengths}: it was given in base64, as some serverless platforms hand it out (isBase64Encoded). Decode it first.`;
  }
  return `${lengths}: a body parser replaced it, and what it was parsed to was written anew. The signature is over the raw body.`;
}

function causeInText(message: Message, text: string): string | undefined {
  if (!text.isWellFormed()) {
    return 'The body was given as a text with lone surrogates, which no octets stand for. Give the octets.';
  }
  if (text.includes('\ufffd')) {
    return 'The body was given as a text with replacement characters (U+FFFD): octets that are no UTF-8 were lost. Give the octets.';
  }
  if (fieldText(message, 'content-length') !== undefined || !isWrittenAnew(text)) return undefined;
  return 'The body was given as a text just as JSON.stringify writes it: if a body parser read it before, it may be other octets than travelled.';
}

function isBase64Of(text: string, length: number): boolean {
  const digits = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0;
  return text.length > 0 && text.length % 4 === 0 && (text.length / 4) * 3 - digits === length;
}

function isWrittenAnew(text: string): boolean {
  if (text.length > jsonCharactersMax) return false;
  try {
    return JSON.stringify(JSON.parse(text)) === text;
  } catch {
    return false;
  }
}
