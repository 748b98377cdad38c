/**
 * One request on its way through the decision graph. The walk is always in one of three modes:
 *
 *   deciding   `decide` runs over the known facts until it ends or wants another one;
 *   gathering  the wanted fact is fetched: principal, content, Idempotency-Key record, state, proposal,
 *              preconditions, ranges or result, mostly from the operation of the resource;
 *   answering  the end becomes a response; only here are responses built.
 *
 * The walk goes back in two cases. After a `superseded` result it waits for its turn at the row (`WalkTurn`),
 * authenticates again, and continues at `exists`. If another process meanwhile revoked or changed the credential, the
 * walk starts again; until the credential is confirmed, the walk reads at most the state. Known values are not awaited
 * (`settle`).
 */

import type { Facts, Want } from '../http/conduct/facts.ts';
import { decide, type End, type Step, start } from '../http/conduct/graph.ts';
import type { NodeName } from '../http/conduct/node.ts';
import { type Allowance, isFile, type Request, type Response } from '../http/message.ts';
import type { Problem } from '../http/problem.ts';
import { anonymous, audienceOf, isAdministrator, type Known } from '../model/principal.ts';
import { type MaybePromise, Overtaken, settle } from '../store/store.ts';
import { respond, withAllowance } from './answer/respond.ts';
import type { ReceivedOnce } from './content/receiving.ts';
import { type Claim, fingerprintOf } from './idempotency.ts';
import {
  type MessageReading,
  readMessage,
  writeRanges,
  writeResult,
  writeStanding,
  writeSuperseded,
} from './message-facts.ts';
import { writeConditions } from './preconditions.ts';
import { type Selected, selectRanges } from './ranges.ts';
import {
  type Ask,
  type Companion,
  type Made,
  orTooLarge,
  type Postponed,
  type Proposal,
  type Result,
  type Standing,
  type Validators,
} from './resource.ts';
import {
  afterRoom,
  type Before,
  countRequest,
  type Ended,
  type Found,
  identify,
  identifySurely,
  isDecided,
  orRefused,
  receiveContent,
  requireClient,
  roomFor,
  takeContent,
  type WalkContext,
  WalkTurn,
} from './walk-context.ts';

export class Walk {
  readonly #context: WalkContext;
  readonly #request: Request;
  readonly #reading: MessageReading;
  readonly #facts: Facts;
  /** Undefined outside development. */
  readonly #trace: NodeName[] | undefined;
  readonly #before: Before;
  #node: NodeName = start;
  #allowance: Allowance | undefined;
  #known: Known | undefined;
  #isConfirmed = false;
  #ask: Ask | undefined;
  #content: unknown;
  #bytes: Uint8Array | undefined;
  /** Content that is taken as it arrives; its operation may still read it. */
  #received: ReceivedOnce | undefined;
  /** The change was made of the content. */
  #isUsed = false;
  #isEnded = false;
  #companions: readonly Companion[];
  #claim: Claim | undefined;
  #standing: Standing | undefined;
  #proposal: Proposal | undefined;
  #validators: Validators | undefined;
  #selected: Selected | undefined;
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
        return confirmed.then((good) => this.#continueConfirmed(good, step));
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

  /** Errors of the continued walk must release the turn and the claim as well. */
  #resume(): MaybePromise<Response> {
    try {
      // What is made for a client that has left takes the time of others; what was changed has its record and its response.
      if (this.#facts.result === undefined) requireClient(this.#request);
      return this.run();
    } catch (error) {
      return this.#abandon(error);
    }
  }

  #continueConfirmed(good: boolean, step: Step): MaybePromise<Response> {
    if (!good) return new Walk(this.#context, this.#request, { allowance: this.#allowance }).run();
    this.#isConfirmed = true;
    // The trace already contains the end, so it is not decided again.
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
        return afterRoom(this.#request, this.#operation(), () => this.#gatherState());
      case 'proposal':
        return this.#gatherProposal();
      case 'preconditions':
        return this.#gatherPreconditions();
      case 'ranges':
        return this.#gatherRanges();
      case 'result':
        return this.#gatherResult();
    }
  }

  #gatherPrincipal(): Promise<void> | undefined {
    const before = this.#before;
    const identified: MaybePromise<Found> =
      before.found ?? identify(this.#context, this.#request, this.#reading, before);
    return settle(identified, (found) => {
      const counted =
        before.counted ?? countRequest(this.#context, this.#request, this.#reading, found, before);
      const resource = this.#reading.route?.resource;
      this.#facts.rateProblem =
        counted?.exceeded === true ? (resource?.rateProblem?.(this.#request) ?? 'rate_limited') : null;
      this.#allowance = ('allowance' in found ? found.allowance : undefined) ?? counted ?? this.#allowance;
      this.#recordCaller(found);
    });
  }

  #recordCaller(identified: Found, now = this.#context.clock()): void {
    if ('problem' in identified) {
      this.#problem = { code: identified.problem };
      this.#facts.credential = 'refused';
      this.#facts.credentialProblem = identified.problem;
      return;
    }
    if ('confirmed' in identified) {
      this.#known = identified;
      // Prevents an unhandled rejection if the walk fails for another reason before it awaits `confirmed`.
      identified.confirmed?.catch(() => undefined);
    }
    const { principal } = identified;
    this.#facts.credential = principal.kind === 'anonymous' ? 'absent' : 'accepted';
    if (principal.kind !== 'anonymous') {
      this.#request.memory?.ofPrincipal(principal.id, isAdministrator(principal));
    }
    this.#facts.permission = isDecided(this.#before) ? 'granted' : this.#operation().permission(principal);
    const { route, query, preferences } = this.#reading;
    this.#ask = {
      request: this.#request,
      captures: route?.captures ?? [],
      query,
      preferences,
      principal,
      party: this.#context.rates.partyOf(this.#request, principal),
      known: this.#known,
      used: this.#known ?? this.#before.used,
      now,
      companions: this.#companions,
      operation: this.#before.operation,
      isChained: this.#turn?.isChained === true,
      hasTurn: this.#turn?.isHeld === true,
    };
  }

  async #gatherContent(): Promise<void> {
    const take = this.#reading.isReceived ? receiveContent : takeContent;
    const taken = await take(this.#context, this.#request, this.#reading, this.#requireAsk());
    if ('received' in taken) this.#received = taken.received;
    else this.#bytes = taken.bytes;
    this.#facts.contentProblem = taken.ok ? null : taken.problem.code;
    if (taken.ok) this.#content = taken.content;
    else this.#problem = taken.problem;
  }

  async #gatherIdempotency(): Promise<void> {
    const ask = this.#requireAsk();
    const fingerprint = fingerprintOf(ask, this.#received?.digest() ?? this.#bytes ?? new Uint8Array());
    const isSecret = this.#operation().idempotent === 'sealed';
    const claim = await this.#context.idempotency.claim(ask, fingerprint, isSecret);
    this.#facts.idempotency = claim.status;
    if (claim.status === 'first') {
      this.#claim = claim;
      this.#companions = [...this.#companions, claim.companion];
      this.#ask = { ...ask, companions: this.#companions };
    } else if (claim.status === 'replay') this.#settleResult(claim.result);
  }

  #gatherState(): Promise<void> | undefined {
    const { standing, chains = false } = this.#operation();
    // Before the state is read, to compute a change of a busy row once; after it if the permission depends on the state, or any caller could.
    const { asyncAsked, permission } = this.#facts;
    if (chains && !asyncAsked && this.#turn === undefined && permission === 'granted') {
      const busy = this.#beginTurn();
      // The graph asks for the state again.
      if (busy !== undefined) return this.#waitForTurn(busy);
    }
    const found = standing(this.#requireAsk());
    return found instanceof Promise ? found.then((known) => this.#stand(known)) : this.#stand(found);
  }

  #stand(found: Standing): Promise<void> | undefined {
    const room = roomFor(this.#request, this.#operation(), found);
    if (room !== undefined) {
      // Those that wait for the turn may have the memory.
      this.#turn?.release();
      this.#turn = undefined;
      return room.then(() => this.#gatherState());
    }
    this.#standing = isDecided(this.#before) ? { ...found, visible: true, permitted: true } : found;
    writeStanding(this.#facts, this.#standing);
    return undefined;
  }

  #beginTurn(): Overtaken | undefined {
    const { changes, chains = false } = this.#operation();
    const { isConditional } = this.#reading;
    this.#turn ??= new WalkTurn(this.#context.lines, this.#request, isConditional, chains);
    return this.#turn.busyAt(changes?.(this.#requireAsk()));
  }

  #gatherProposal(): Promise<void> | undefined {
    if (this.#received === undefined || this.#received.isOpened || this.#facts.ifMatch !== undefined)
      return this.#propose();
    const judging = this.#gatherPreconditions();
    return judging === undefined
      ? this.#proposeUnlessRefused()
      : judging.then(() => this.#proposeUnlessRefused());
  }

  /** Preconditions are judged before content that has not arrived: RFC 9110 §13.2.1 says "prior to processing the request content". */
  #proposeUnlessRefused(): Promise<void> | undefined {
    if (decide(this.#facts, undefined, 'match_required').kind !== 'refuse') return this.#propose();
    this.#facts.proposalProblem = null;
    return undefined;
  }

  #propose(): Promise<void> | undefined {
    const { propose } = this.#operation();
    if (propose === undefined) {
      this.#facts.proposalProblem = null;
      return undefined;
    }
    const proposing = propose(this.#requireAsk(), this.#requireStanding(), this.#content);
    return settle(this.#received === undefined ? proposing : orRefused(proposing), (proposal) => {
      this.#proposal = proposal;
      this.#facts.proposalProblem = proposal.problem === null ? null : proposal.problem.code;
      if (proposal.problem !== null) this.#problem = proposal.problem;
      else if (proposal.elsewhere !== undefined) this.#facts.elsewhere = true;
    });
  }

  #gatherPreconditions(): Promise<void> | undefined {
    const { validators } = this.#operation();
    const { isConditional } = this.#reading;
    // Validators are computed only for a comparison: the version of a list costs a store read.
    if (validators === undefined || this.#facts.exists === false || !isConditional) {
      const fields = isConditional ? this.#request.fields : undefined;
      writeConditions(this.#facts, fields, null, this.#requireAsk().now, this.#context.limits);
      return undefined;
    }
    return settle(validators(this.#requireAsk(), this.#requireStanding(), this.#proposal), (found) => {
      this.#validators = found;
      writeConditions(this.#facts, this.#request.fields, found, this.#requireAsk().now, this.#context.limits);
    });
  }

  /** The representation is created before the answer, because its length decides which answer it is. */
  #gatherRanges(): Promise<void> | undefined {
    const ask = this.#requireAsk();
    const { represent } = this.#operation();
    if (represent === undefined) throw new Error('an operation with ranges requires a represent stage');
    return settle(represent(ask, this.#requireStanding(), this.#proposal), (representation) => {
      this.#selected = selectRanges(ask.request.fields, representation, ask.now);
      writeRanges(this.#facts, this.#selected);
    });
  }

  async #gatherResult(): Promise<void> {
    const { act, changes } = this.#operation();
    if (act === undefined) throw new Error('an operation with an unsafe method requires an act stage');
    const busy = this.#beginTurn();
    const row = changes?.(this.#requireAsk());
    const making = () => act(this.#requireAsk(), this.#requireStanding(), this.#proposal);
    const result = busy ?? (await orTooLarge(making));
    if ('made' in result) this.#isUsed = true;
    if (result instanceof Overtaken) return this.#lookAgain(result);
    if ('postponed' in result) {
      this.#turn?.release();
      await this.#claim?.release(undefined);
      this.#claim = undefined;
      this.#facts.asyncAsked = true;
      this.#node = 'async_asked';
      return;
    }
    // A refusal may rest on a change that fails.
    const isProvisional = this.#standing?.isProvisional === true && 'refused' in result;
    if (isProvisional && row !== undefined) return this.#lookAgain(new Overtaken(row, true));
    this.#settleResult(result);
  }

  #lookAgain(overtaken: Overtaken): Promise<void> {
    writeSuperseded(this.#facts);
    return this.#waitForTurn(overtaken);
  }

  async #waitForTurn({ row, isProvisional }: Overtaken): Promise<void> {
    if (await this.#turn?.take(row, isProvisional)) await this.#identifyAgain();
  }

  /** While the change waited, the credential may have been revoked, or the principal may have lost rights. */
  async #identifyAgain(): Promise<void> {
    const { principal, now } = this.#requireAsk();
    const found = await identifySurely(this.#context, this.#request, this.#reading, this.#before);
    this.#recordCaller(found, now);
    if ('problem' in found || audienceOf(found.principal) !== audienceOf(principal)) this.#node = start;
  }

  #settleResult(result: Exclude<Result, Overtaken | Postponed>): void {
    this.#turn?.release();
    writeResult(this.#facts, result);
    if ('made' in result) {
      this.#made = result;
      return;
    }
    this.#problem = result.refused;
    if (result.allowance !== undefined) this.#allowance = result.allowance;
  }

  #finish(step: End): MaybePromise<Response> {
    if (this.#standing?.isProvisional === true && this.#made === undefined) return this.#startAgainAlone();
    this.#turn?.release();
    this.#endContent();
    if (this.#claim !== undefined && step.kind === 'refuse') return this.#releaseClaim(step);
    return this.#respond(step);
  }

  /** The end of the walk was decided by a state that is not committed. */
  async #startAgainAlone(): Promise<Response> {
    try {
      const row = this.#operation().changes?.(this.#requireAsk());
      if (row === undefined) throw new Error('a provisional state of no row');
      await this.#lookAgain(new Overtaken(row, true));
      this.#facts.result = undefined;
      this.#standing = undefined;
      this.#problem = undefined;
      this.#node = start;
      this.#trace?.splice(0);
    } catch (error) {
      return this.#abandon(error);
    }
    return this.#resume();
  }

  /** Frees the Idempotency-Key, or settles it with the refusal if the change itself was refused. */
  async #releaseClaim(step: End): Promise<Response> {
    const isSettled = this.#facts.result === 'refused' && this.#problem?.code !== 'unavailable';
    await this.#claim?.release(isSettled ? this.#problem : undefined);
    return this.#respond(step);
  }

  async #abandon(error: unknown): Promise<never> {
    this.#turn?.release();
    this.#endContent();
    await this.#claim?.release(undefined).catch(() => {
      // The claim expires by itself; the current error is the one to report.
    });
    throw error;
  }

  /** Counts octets of a file against the rate limit, which hears of them only when they are sent or were read. */
  #chargeOctets(octets: number): void {
    const { rates, clock } = this.#context;
    if (octets > 0 && this.#ask !== undefined)
      rates.chargeOctets(this.#request, this.#ask.principal, octets, clock());
  }

  #endContent(): void {
    if (this.#received === undefined || this.#isEnded) return;
    // Once, although a response that cannot be built ends the walk again.
    this.#isEnded = true;
    this.#chargeOctets(this.#received.bytes);
    if (this.#isUsed || this.#facts.contentProblem !== null) return;
    this.#operation().discard?.(this.#content);
  }

  #respond(step: End): MaybePromise<Response> {
    const ended: Ended = {
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
      selected: this.#selected,
      problem: this.#problem,
      made: this.#made,
    };
    const response = respond(this.#context, step, ended);
    return response instanceof Promise
      ? response.then((known) => this.#give(step, ended, known))
      : this.#give(step, ended, response);
  }

  #give(step: End, ended: Ended, response: Response): Response {
    if (isFile(response.content) && this.#request.method !== 'HEAD')
      this.#chargeOctets(response.content.bytes);
    this.#context.answers?.offer(step, ended, response);
    return withAllowance(response, ended.allowance);
  }

  #operation() {
    const { operation } = this.#reading;
    if (operation === undefined) throw new Error('the request has no operation');
    return operation;
  }

  #requireAsk(): Ask {
    if (this.#ask === undefined) throw new Error('the principal is not known yet');
    return this.#ask;
  }

  #requireStanding(): Standing {
    if (this.#standing === undefined) throw new Error('the standing of the target is not known yet');
    return this.#standing;
  }
}
