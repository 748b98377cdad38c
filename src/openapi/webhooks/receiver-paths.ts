/** `/webhooks/{sender}` for each declared sender (§4.14): what it posts, how it signs that, and how it is answered. */
import type { DeclaredSender } from '../../config/senders.ts';
import type { Item } from '../item.ts';
import type { Content } from '../operation.ts';
import type { PathDescription } from '../path-item.ts';
import { plainRead } from '../traits.ts';
import type { ReceivingSetting } from './receiving-setting.ts';

export const receiverTag = 'webhooks';

export function receiverPaths({
  senders,
  base,
  receivedBytesMax,
}: ReceivingSetting): readonly PathDescription[] {
  return [...senders.values()].map((sender) => receiverPath(sender, base, receivedBytesMax));
}

function receiverPath(sender: DeclaredSender, base: string, bytesMax: number): PathDescription {
  const { name, description, rule } = sender;
  const challenge = rule.challenge;
  const asks =
    challenge === undefined ? '' : ' A challenge is answered 200 with what it asks for, and not kept.';
  return {
    path: `${base}/webhooks/${name}`,
    name: `Webhook${pascal(name)}`,
    noun: `the receiver of ${name}`,
    operations: [
      {
        id: `receive${pascal(name)}`,
        tag: receiverTag,
        summary: `Post a webhook of ${name}`,
        description: `${description === '' ? '' : `${description} `}For the sender ${name} alone, which signs what it posts. 204 when the message is kept, also for one that was kept before and for types that nobody handles; what is done with it comes after.${asks} At most ${bytesMax} octets, of any media type.`,
        traits: {
          ...plainRead,
          method: 'POST',
          signed: true,
          // Where it can ask back, it is told.
          action: challenge === undefined,
          silent: challenge === undefined,
          contentTypes: ['*/*'],
          unlimited: true,
          validators: 'none',
          contentCodes: [
            'content_too_large',
            'request_timeout',
            'signature_invalid',
            'signature_stale',
            'unavailable',
          ],
          resultCodes: ['unavailable'],
        },
        parameters: signatureFields(sender),
        requestContent: { '*/*': {} },
        ...(challenge === undefined ? {} : { content: { changed: challengeContent(challenge.answer) } }),
        schemes: [],
      },
    ],
  };
}

function challengeContent(answer: string): Content {
  return {
    'application/json': {
      schema: { type: 'object', properties: { [answer]: {} }, required: [answer] },
      example: { [answer]: '3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P' },
    },
  };
}

function signatureFields({ rule: { signature } }: DeclaredSender): readonly Item[] {
  if (signature.kind === 'token') return [field(signature.header, 'The secret itself.')];
  const { header, hash, encoding, prefix, signed, timestamp, id } = signature;
  const before = prefix === '' ? '' : ` behind \`${prefix}\``;
  const fields = [field(header, `HMAC ${hash} of \`${signed}\` as ${encoding}${before}.`)];
  if (timestamp !== undefined && 'header' in timestamp) {
    fields.push(field(timestamp.header, 'When it was signed, in Unix seconds.'));
  }
  if (id !== undefined) fields.push(field(id, 'Id of the message, the same on every attempt.'));
  return fields;
}

function field(name: string, description: string): Item {
  return { name, in: 'header', required: true, description, schema: { type: 'string' } };
}

/** `acme-eu` is `AcmeEu`. Names that differ stay different: a digit or nothing behind a hyphen keeps it as `_`. */
function pascal(name: string): string {
  const [first = '', ...rest] = name.split('-');
  return (
    capital(first) + rest.map((word) => (startsWithLetter.test(word) ? capital(word) : `_${word}`)).join('')
  );
}

const startsWithLetter = /^[a-z]/;

function capital(word: string): string {
  return word.slice(0, 1).toUpperCase() + word.slice(1);
}
