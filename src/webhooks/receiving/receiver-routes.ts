/**
 * `{base}/webhooks/{name}` (§4.14): the path to which a sender posts, one resource for each declared sender; any other
 * name is an unknown path.
 *
 * Requests are anonymous; the signature alone decides. A repetition and a type without a handler get the same response
 * as everything else, because an error would only make the sender repeat itself.
 */
import type { Configuration } from '../../config/configuration.ts';
import type { DeclaredSender } from '../../config/senders.ts';
import {
  type Content,
  type Item,
  json,
  type OperationDocumentation,
  type Tag,
} from '../../kernel/documentation.ts';
import type {
  Made,
  Operation,
  Proposal,
  Resource,
  Result,
  Standing,
  Understood,
} from '../../kernel/resource.ts';
import { messageBound, messageOctets } from '../../memory/work-rules.ts';
import type { Services } from '../../store/capabilities.ts';
import type { Accept, Verdict } from './accept-message.ts';

export function receiveResources(
  services: Services,
  { base, senders }: Pick<Configuration, 'base' | 'senders'>,
  accept: Accept,
): readonly Resource[] {
  return [...senders.values()].map((sender) => ({
    pattern: `${base}/webhooks/${sender.name}`,
    documentation: {
      name: `Webhook${pascal(sender.name)}`,
      noun: `the receiver of ${sender.name}`,
      tag,
    },
    operations: new Map([['POST', postOperation(services, accept, sender) as Operation]]),
    constantFields: [],
    offers: ['application/json'],
    ignoresCredentials: true,
    unlimited: true,
    judgedBySignature: true,
  }));
}

const tag: Tag = {
  name: 'webhooks',
  description: 'The paths where senders post webhooks, one for each sender.',
};

/** Describes what the sender posts, how it signs, and the responses. */
function documentationOf(sender: DeclaredSender, bytesMax: number): OperationDocumentation {
  const { name, description, rule } = sender;
  const { challenge } = rule;
  const asks =
    challenge === undefined ? '' : ' A challenge is answered 200 with the requested value and not stored.';
  return {
    id: `receive${pascal(name)}`,
    summary: `Post a webhook as ${name}`,
    description: `${description === '' ? '' : `${description} `}Only for the sender ${name}, which signs its messages. Answered 204 when the message is stored, also for a repeated message and for types that no handler processes; processing follows.${asks} At most ${bytesMax} octets, of any media type.`,
    parameters: signatureFields(sender),
    takes: { '*/*': {} },
    // Only senders with a challenge get content.
    ...(challenge === undefined
      ? {}
      : { silence: 'sometimes', gives: { changed: challengeContent(challenge.answer) } }),
    codes: ['signature_invalid', 'signature_stale', 'unavailable'],
  };
}

function challengeContent(answer: string): Content {
  return json(
    { type: 'object', properties: { [answer]: {} }, required: [answer] },
    { [answer]: '3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P' },
  );
}

function signatureFields({ rule: { signature } }: DeclaredSender): readonly Item[] {
  if (signature.kind === 'token') return [field(signature.header, 'The secret.')];
  const { header, hash, encoding, prefix, signed, timestamp, id } = signature;
  const before = prefix === '' ? '' : ` behind \`${prefix}\``;
  const fields = [field(header, `HMAC ${hash} of \`${signed}\` as ${encoding}${before}.`)];
  if (timestamp !== undefined && 'header' in timestamp) {
    fields.push(field(timestamp.header, 'Time of the signature: Unix time in seconds.'));
  }
  if (id !== undefined) fields.push(field(id, 'Id of the message, the same for every attempt.'));
  return fields;
}

function field(name: string, description: string): Item {
  return { name, in: 'header', required: true, description, schema: { type: 'string' } };
}

/** `acme-eu` becomes `AcmeEu`. Different names stay different: before a digit or nothing, a hyphen becomes `_`. */
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

/** A verified message to store, or a challenge to answer. */
type Judged = Extract<Verdict, { ok: true }>;
type Proposed = Proposal & { readonly judged: Judged | undefined };

const open: Standing = { exists: true, visible: true, permitted: true };

function postOperation(
  { settings: { receivedBytesMax }, memory }: Services,
  accept: Accept,
  sender: DeclaredSender,
): Operation<Standing, Judged, Proposed> {
  return {
    documentation: documentationOf(sender, receivedBytesMax),
    permission: () => 'granted',
    raw: true,
    ...messageBound({ most: receivedBytesMax, memoryBytes: memory.budget.bytesMax }),
    makes: (bytes) => messageOctets(bytes?.length ?? 0),
    reports: true,
    understand({ request }, bytes) {
      const verdict = accept.verify(sender, request, bytes);
      return verdict instanceof Promise ? verdict.then(understood) : understood(verdict);
    },
    standing: () => open,
    propose: (_ask, _standing, judged) => ({ problem: null, judged }),
    async act(_ask, _standing, proposal) {
      if (proposal?.judged === undefined) throw new Error('a stored message requires its verdict');
      return take(accept, sender, proposal.judged);
    },
  };
}

function understood(verdict: Verdict): Understood<Judged> {
  return verdict.ok ? { ok: true, value: verdict } : verdict;
}

async function take(accept: Accept, sender: DeclaredSender, judged: Judged): Promise<Result> {
  if ('challenge' in judged) {
    const { name, value } = judged.challenge;
    return { made: { ...silent, doc: JSON.stringify({ [name]: value }) }, rev: 0 };
  }
  await accept.keep(sender, judged.verified);
  return taken;
}

/** Without a Location: senders may not read the inbox. */
const silent: Made = {
  outcome: 'made',
  created: false,
  location: null,
  doc: null,
  modifiedAt: null,
  validated: false,
};
const taken: Result = { made: silent, rev: 0 };
