/**
 * One request through the decision graph. The walk is always in one of three modes:
 *
 *   deciding   `decide` runs over the facts at hand until it ends or wants more;
 *   gathering  what it wants is fetched: principal, content, Idempotency-Key record, state, proposal,
 *              preconditions or result, each from the operation of the resource, each into the facts;
 *   answering  the end is turned into a response, the only place where bytes are made.
 *
 * A `superseded` result is one way back: the walk waits for its turn at the row (walk-turn.ts), asks again whose the credential is, and looks
 * anew from `exists` on. The other is a credential that another process revoked or changed meanwhile: the state may be read before that is
 * known, nothing else, and the walk begins again. What is there is not awaited (settle.ts).
 */

import { decide, type Step } from '../http/conduct/decide.ts';
import type { Facts, Want } from '../http/conduct/facts.ts';
import { start } from '../http/conduct/graph.ts';
import type { NodeName } from '../http/conduct/node.ts';
import type { Allowance, Request, Response } from '../http/message.ts';

import type { Problem } from '../http/problem.ts';
import type { MediaType } from '../http/syntax/media-type.ts';
import { anonymous, audienceOf, isAdministrator, type Known } from '../model/principal.ts';
import { type ChangeLines, type MaybePromise, Overtaken, type RowName, type Turn } from '../store/store.ts';
import { settle } from '../store/when-known.ts';
import { respond } from './answer/respond.ts';
import { type Claim, fingerprintOf } from './idempotency.ts';
import {
  contentBytesMax,
  type MessageReading,
  readMessage,
  shortBytesMax,
  writeConditions,
  writeResult,
  writeStanding,
  writeSuperseded,
} from './message-facts.ts';
import type { Ask, Companion, Made, Proposal, Result, Standing, Validators } from './resource.ts';
import type { WalkContext } from './walk-context.ts';
import { type Before, countRequest, type Found, identify, identifySurely } from './walk-start.ts';

type LinesOfRows = Pick<ChangeLines, 'isBusy' | 'turn'>;

/**
 * The turn of a walk at the rows that it changes (store/lines.ts). A change without a precondition that comes to a busy row, or that another
 * came before, waits in the line of that row and then looks anew. One with a precondition never waits the first time that it lost:
 * looking anew decides it, mostly as 412.
 */
class WalkTurn {
  readonly #lines: LinesOfRows;
  readonly #request: Request;
  readonly #isConditional: boolean;
  #turn: Turn | undefined;
  #hasLost = false;

  /** @param isConditional whether the request has a precondition */
  constructor(lines: LinesOfRows, request: Request, isConditional: boolean) {
    this.#lines = lines;
    this.#request = request;
    this.#isConditional = isConditional;
  }

  /** As if it had lost already, where others wait for the row and this walk does not yet. */
  busyAt(row: RowName | undefined): Overtaken | undefined {
    if (row === undefined || this.#isConditional || this.#turn !== undefined) return undefined;
    return this.#lines.isBusy(row) ? new Overtaken(row) : undefined;
  }

  /** Waits until the walk may try again. @returns whether it waited @throws LineUnavailable */
  async take(row: RowName): Promise<boolean> {
    if (this.#isConditional && !this.#hasLost) {
      this.#hasLost = true;
      return false;
    }
    this.#turn ??= this.#lines.turn(this.#request.onGone?.bind(this.#request));
    await this.#turn.take(row);
    return true;
  }

  release(): void {
    this.#turn?.release();
  }
}

export class Walk {
  readonly #context: WalkContext;
  readonly #request: Request;
  readonly #reading: MessageReading;
  readonly #facts: Facts;
  /** Kept only where someone will read it. */
  readonly #trace: NodeName[] | undefined;
  readonly #before: Before;
  #node: NodeName = start;
  #allowance: Allowance | undefined;
  #known: Known | undefined;
  #isConfirmed = false;
  #ask: Ask | undefined;
  #content: unknown;
  #bytes: Uint8Array | undefined;
  #companions: readonly Companion[];
  #claim: Claim | undefined;
  #standing: Standing | undefined;
  #proposal: Proposal | undefined;
  #validators: Validators | undefined;
  #problem: Problem | undefined;
  #made: { readonly made: Made; readonly rev: number } | undefined;
  #turn: WalkTurn | undefined;

  constructor(context: WalkContext, request: Request, before: Before = {}) {
    this.#context = context;
    this.#request = request;
    this.#reading = readMessage(request, context.router, context.limits);
    this.#facts = this.#reading.facts;
    this.#trace = context.development ? [] : undefined;
    this.#before = before;
    this.#allowance = before.allowance;
    this.#companions = before.companions ?? [];
  }

  run(): MaybePromise<Response> {
    const begun = this.#context.loop.begin();
    const answer = this.#run();
    this.#context.loop.end(begun, this.#request, this.#reading.route?.resource.pattern);
    return answer;
  }

  #run(): MaybePromise<Response> {
    for (;;) {
      const step = decide(this.#facts, this.#trace, this.#node);
      const confirmed = this.#known?.confirmed;
      if (confirmed !== undefined && !this.#isConfirmed && (step.kind !== 'want' || step.want !== 'state')) {
        if (step.kind === 'want') this.#node = step.node;
        return confirmed.then((good) => this.#goOn(good, step));
      }
      if (step.kind !== 'want') return this.#finish(step);
      this.#node = step.node;
      const gathering = this.#gather(step.want);
      if (gathering !== undefined) {
        return gathering.then(
          () => this.#resume(),
          (error) => this.#abandon(error),
        );
      }
    }
  }

  /** An error here must give back the turn and the claim like one of a gathering. */
  #resume(): MaybePromise<Response> {
    try {
      return this.run();
    } catch (error) {
      return this.#abandon(error);
    }
  }

  #goOn(good: boolean, step: Step): MaybePromise<Response> {
    if (!good) return new Walk(this.#context, this.#request, { allowance: this.#allowance }).run();
    this.#isConfirmed = true;
    // The trace has the end already: it is not decided again.
    return step.kind === 'want' ? this.run() : this.#finish(step);
  }

  #gather(want: Want): Promise<void> | undefined {
    switch (want) {
      case 'principal':
        return this.#gatherPrincipal();
      case 'content':
        return this.#gatherContent();
      case 'idempotency':
        return this.#gatherIdempotency();
      case 'state':
        return settle(this.#operation().standing(this.#asked()), (standing) => {
          this.#standing = standing;
          writeStanding(this.#facts, standing);
        });
      case 'proposal':
        return this.#gatherProposal();
      case 'preconditions':
        return this.#gatherPreconditions();
      case 'result':
        return this.#gatherResult();
    }
  }

  #gatherPrincipal(): Promise<void> | undefined {
    return settle(identify(this.#context, this.#request, this.#reading, this.#before), (found) => {
      const counted = countRequest(this.#context, this.#request, this.#reading, found, this.#before);
      this.#facts.rateExceeded = counted?.exceeded ?? false;
      this.#allowance = ('allowance' in found ? found.allowance : undefined) ?? counted ?? this.#allowance;
      this.#recognise(found);
    });
  }

  #recognise(identified: Found, now = this.#context.clock()): void {
    if ('problem' in identified) {
      this.#problem = { code: identified.problem };
      this.#facts.credential = 'refused';
      this.#facts.credentialProblem = identified.problem;
      return;
    }
    if ('confirmed' in identified) {
      this.#known = identified;
      // It is looked at before anything is answered, unless the walk fails for another reason first.
      identified.confirmed?.catch(() => undefined);
    }
    const { principal } = identified;
    const { query, preferences } = this.#reading;
    this.#facts.credential = principal.kind === 'anonymous' ? 'absent' : 'accepted';
    if (principal.kind !== 'anonymous') {
      this.#request.memory?.ofPrincipal(principal.id, isAdministrator(principal));
    }
    this.#facts.permission = this.#operation().permission(principal);
    this.#ask = {
      request: this.#request,
      captures: this.#reading.route?.captures ?? [],
      query,
      preferences,
      principal,
      party: this.#context.rates.partyOf(this.#request, principal),
      known: this.#known,
      now,
      companions: this.#companions,
    };
  }

  async #gatherContent(): Promise<void> {
    const taken = await takeContent(this.#context, this.#request, this.#reading, this.#asked());
    this.#bytes = taken.bytes;
    this.#facts.contentProblem = taken.ok ? null : taken.problem.code;
    if (taken.ok) this.#content = taken.content;
    else this.#problem = taken.problem;
  }

  async #gatherIdempotency(): Promise<void> {
    const ask = this.#asked();
    const fingerprint = fingerprintOf(ask, this.#bytes ?? new Uint8Array());
    const isSecret = this.#operation().idempotent === 'sealed';
    const claim = await this.#context.idempotency.claim(ask, fingerprint, isSecret);
    this.#facts.idempotency = claim.status;
    if (claim.status === 'first') {
      this.#claim = claim;
      this.#companions = [...this.#companions, claim.companion];
      this.#ask = { ...ask, companions: this.#companions };
    } else if (claim.status === 'replay') this.#settleResult(claim.result);
  }

  #gatherProposal(): Promise<void> | undefined {
    const { propose } = this.#operation();
    if (propose === undefined) {
      this.#facts.proposalProblem = null;
      return undefined;
    }
    return settle(propose(this.#asked(), this.#stood(), this.#content), (proposal) => {
      this.#proposal = proposal;
      this.#facts.proposalProblem = proposal.problem === null ? null : proposal.problem.code;
      if (proposal.problem !== null) this.#problem = proposal.problem;
      else if (proposal.elsewhere !== undefined) this.#facts.elsewhere = true;
    });
  }

  #gatherPreconditions(): Promise<void> | undefined {
    const { validators } = this.#operation();
    const { isConditional } = this.#reading;
    // What nobody compares is not computed: the version of a list costs a store read.
    if (validators === undefined || this.#facts.exists === false || !isConditional) {
      writeConditions(this.#facts, isConditional ? this.#request : undefined, null, this.#asked().now);
      return undefined;
    }
    return settle(validators(this.#asked(), this.#stood(), this.#proposal), (found) => {
      this.#validators = found;
      writeConditions(this.#facts, this.#request, found, this.#asked().now);
    });
  }

  async #gatherResult(): Promise<void> {
    const { act, changes } = this.#operation();
    if (act === undefined) throw new Error('an unsafe method without an act');
    this.#turn ??= new WalkTurn(this.#context.lines, this.#request, this.#reading.isConditional);
    const busy = this.#turn.busyAt(changes?.(this.#asked()));
    const result = busy ?? (await act(this.#asked(), this.#stood(), this.#proposal));
    if (!(result instanceof Overtaken)) return this.#settleResult(result);
    writeSuperseded(this.#facts);
    if (await this.#turn.take(result.row)) await this.#identifyAgain();
  }

  /** A credential may have ended, and its principal lost rights, while the change waited. */
  async #identifyAgain(): Promise<void> {
    const { principal, now } = this.#asked();
    const found = await identifySurely(this.#context, this.#request, this.#reading, this.#before);
    this.#recognise(found, now);
    if ('problem' in found || audienceOf(found.principal) !== audienceOf(principal)) this.#node = start;
  }

  #settleResult(result: Exclude<Result, Overtaken>): void {
    this.#turn?.release();
    writeResult(this.#facts, result);
    if ('made' in result) {
      this.#made = result;
      return;
    }
    this.#problem = result.refused;
    if (result.allowance !== undefined) this.#allowance = result.allowance;
  }

  #finish(step: Exclude<Step, { kind: 'want' }>): MaybePromise<Response> {
    this.#turn?.release();
    if (this.#claim !== undefined && step.kind === 'refuse') return this.#giveBack(step);
    return this.#respond(step);
  }

  /** A request refused before the store was asked, or that gave up on lost races, leaves its Idempotency-Key free. */
  async #giveBack(step: Exclude<Step, { kind: 'want' }>): Promise<Response> {
    const isSettled = this.#facts.result === 'refused' && this.#problem?.code !== 'unavailable';
    await this.#claim?.release(isSettled ? this.#problem : undefined);
    return this.#respond(step);
  }

  async #abandon(error: unknown): Promise<never> {
    this.#turn?.release();
    await this.#claim?.release(undefined).catch(() => {
      // The claim expires by itself; the failure under way is the one to report.
    });
    throw error;
  }

  #respond(step: Exclude<Step, { kind: 'want' }>): MaybePromise<Response> {
    return respond(this.#context, step, {
      request: this.#request,
      reading: this.#reading,
      trace: this.#trace,
      allowance: this.#allowance,
      ask: this.#ask,
      principal: this.#ask?.principal ?? anonymous,
      bytes: this.#bytes,
      standing: this.#standing,
      proposal: this.#proposal,
      validators: this.#validators,
      problem: this.#problem,
      made: this.#made,
    });
  }

  #operation() {
    const { operation } = this.#reading;
    if (operation === undefined) throw new Error('the walk asked for an operation where none is');
    return operation;
  }

  #asked(): Ask {
    if (this.#ask === undefined) throw new Error('the walk asked before the principal was known');
    return this.#ask;
  }

  #stood(): Standing {
    if (this.#standing === undefined) throw new Error('the walk went on before it knew what stands');
    return this.#standing;
  }
}

type Taken =
  | { readonly ok: true; readonly bytes: Uint8Array; readonly content: unknown }
  /** `bytes` where it came as far as that. */
  | { readonly ok: false; readonly bytes: Uint8Array | undefined; readonly problem: Problem };

const octetStream: MediaType = { type: 'application/octet-stream', parameters: new Map() };

/**
 * The content of a request as its operation understands it: read, freed of its codings, and parsed (§4.4); or as it came, where the
 * operation is to judge these very octets (§4.14.1).
 */
async function takeContent(
  { limits, decodeContent, loop }: WalkContext,
  request: Request,
  { codings, mediaType, operation, route }: MessageReading,
  ask: Ask,
): Promise<Taken> {
  if (operation?.understand === undefined) throw new Error('content without a meaning');
  const received = await request.readContent(contentBytesMax(operation, limits));
  if (!received.ok) return { ok: false, bytes: undefined, problem: { code: received.code } };
  let { bytes } = received;
  // Not before it is all here: who waits for the rest of its content keeps nobody waiting.
  await request.memory?.takeTurn(bytes.length);
  if (operation.raw !== true) {
    const decoded = await decodeContent(bytes, codings, request.memory);
    if (!decoded.ok) return { ok: false, bytes: undefined, problem: { code: decoded.code } };
    bytes = decoded.bytes;
    if (bytes.length > (shortBytesMax(operation, limits) ?? bytes.length)) {
      return { ok: false, bytes: undefined, problem: { code: 'content_too_large' } };
    }
    if (mediaType === undefined) throw new Error('content without a media type');
  }
  const begun = loop.begin();
  const asked = operation.understand(ask, bytes, mediaType ?? octetStream);
  loop.end(begun, request, route?.resource.pattern);
  // Verifying a signature takes 10 us; a turn more is worth sparing.
  const understood = asked instanceof Promise ? await asked : asked;
  return understood.ok
    ? { ok: true, bytes, content: understood.value }
    : { ok: false, bytes, problem: understood.problem };
}
