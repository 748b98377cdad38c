/**
 * `{base}/webhooks/{name}` (§4.14): where a sender posts, one resource for each that is declared; any other name is no path at all.
 *
 * Whoever posts is nobody, and what was posted is judged by its signature alone. A repetition and a type that nobody heeds are answered as
 * everything else: an error would only make the sender repeat itself.
 */
import type { DeclaredSender } from '../../../config/senders.ts';
import type { Accept, Verdict } from '../../../webhooks/inbound/accept/accept.ts';
import type { Made, Operation, Proposal, Resource, Result, Standing, Understood } from '../../resource.ts';

export type ReceiveOptions = {
  readonly senders: ReadonlyMap<string, DeclaredSender>;
  /** `/api/v1` */
  readonly base: string;
  readonly accept: Accept;
  readonly receivedBytesMax: number;
};

export function receiveResources(options: ReceiveOptions): readonly Resource[] {
  return [...options.senders.values()].map((sender) => ({
    pattern: `${options.base}/webhooks/${sender.name}`,
    operations: new Map([['POST', postOperation(options, sender) as Operation]]),
    constantFields: [],
    offers: ['application/json'],
    ignoresCredentials: true,
    unlimited: true,
    judgedBySignature: true,
  }));
}

/** What is to be answered, and kept. */
type Judged = Extract<Verdict, { ok: true }>;
type Proposed = Proposal & { readonly judged: Judged | undefined };

const open: Standing = { exists: true, visible: true, permitted: true };

function postOperation(
  { accept, receivedBytesMax }: ReceiveOptions,
  sender: DeclaredSender,
): Operation<Standing, Judged, Proposed> {
  return {
    permission: () => 'granted',
    raw: true,
    contentBytesMax: receivedBytesMax,
    reports: true,
    understand({ request }, bytes) {
      const verdict = accept.verify(sender, request, bytes);
      return verdict instanceof Promise ? verdict.then(understood) : understood(verdict);
    },
    standing: () => open,
    propose: (_ask, _standing, judged) => ({ problem: null, judged }),
    async act(_ask, _standing, proposal) {
      if (proposal?.judged === undefined) throw new Error('a message that was not judged');
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

/** Without a place: whoever sends may not look into the inbox. */
const silent: Made = {
  outcome: 'made',
  created: false,
  location: null,
  doc: null,
  modifiedAt: null,
  validated: false,
};
const taken: Result = { made: silent, rev: 0 };
