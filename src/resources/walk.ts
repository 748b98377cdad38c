/**
 * One request through the decision graph (design §2). The walk is always in one of three modes:
 *
 *   deciding   `decide` runs over the facts at hand until it ends or wants more;
 *   gathering  what it wants is fetched: principal, content, Idempotency-Key record, state, proposal,
 *              preconditions or result, each from the operation of the resource, each into the facts;
 *   answering  the end is turned into a response, the only place where bytes are made.
 *
 * A `superseded` result is one way back: the facts about what stands are forgotten, the graph leads to `exists` again, and the walk
 * looks anew, at most `commitRetriesMax` times. The other is a credential that another process revoked or changed meanwhile: what
 * stands may be looked at before that is known, nothing else, and the walk begins again. What is there is not awaited (settle.ts).
 */

import type { Allowance } from '../http/allowance.ts';
import { decide, type Step } from '../http/conduct/decide.ts';
import type { Facts, Want } from '../http/conduct/facts.ts';
import { start } from '../http/conduct/graph.ts';
import type { NodeName } from '../http/conduct/node.ts';
import type { Request, Response } from '../http/message.ts';
import type { Problem } from '../http/problem.ts';
import type { Known } from '../model/credential.ts';
import { anonymous, type Principal } from '../model/principal.ts';
import type { MaybePromise } from '../store/store.ts';
import { respond } from './answer/respond.ts';
import { type Claim, fingerprintOf } from './idempotency.ts';
import { type MessageReading, readMessage } from './message-facts.ts';
import type { Ask, Companion, Made, Proposal, Result, Standing, Validators } from './resource.ts';
import type { Room } from './room.ts';
import { settle } from './settle.ts';
import { takeContent } from './take-content.ts';
import { writeConditions, writeResult, writeStanding, writeSuperseded } from './walk-facts.ts';
import { type Before, identify } from './walk-start.ts';

export class Walk {
  readonly #room: Room;
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
  #attempts = 0;

  constructor(room: Room, request: Request, before: Before = {}) {
    this.#room = room;
    this.#request = request;
    this.#reading = readMessage(request, room.router, room.limits);
    this.#facts = this.#reading.facts;
    this.#trace = room.development ? [] : undefined;
    this.#before = before;
    this.#allowance = before.allowance;
    this.#companions = before.companions ?? [];
  }

  run(): MaybePromise<Response> {
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
          () => this.run(),
          (error) => this.#abandon(error),
        );
      }
    }
  }

  #goOn(good: boolean, step: Step): MaybePromise<Response> {
    if (!good) return new Walk(this.#room, this.#request, { allowance: this.#allowance }).run();
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
    if (this.#before.principal !== undefined) {
      this.#admit(this.#before.principal, this.#room.clock());
      return undefined;
    }
    return settle(identify(this.#room, this.#request, this.#reading), (identified) => {
      const now = this.#room.clock();
      if ('problem' in identified) {
        this.#count(anonymous, now);
        if (identified.allowance !== undefined) this.#allowance = identified.allowance;
        this.#problem = { code: identified.problem };
        this.#facts.credential = 'refused';
        this.#facts.credentialProblem = identified.problem;
      } else {
        if (this.#reading.route?.resource.unlimited !== true) this.#count(identified.principal, now);
        if ('confirmed' in identified) {
          this.#known = identified;
          // It is looked at before anything is answered, unless the walk fails for another reason first.
          identified.confirmed?.catch(() => undefined);
        }
        this.#admit(identified.principal, now);
      }
    });
  }

  #count(principal: Principal, now: number): void {
    if (this.#before.allowance !== undefined) {
      this.#facts.rateExceeded = false;
      return;
    }
    const admit = this.#reading.route?.resource.admit;
    this.#allowance =
      admit === undefined ? this.#room.rates.admit(this.#request, principal, now) : admit(this.#request, now);
    this.#facts.rateExceeded = this.#allowance?.exceeded ?? false;
  }

  #admit(principal: Principal, now: number): void {
    const { route, query, preferences } = this.#reading;
    this.#facts.credential = principal.kind === 'anonymous' ? 'absent' : 'accepted';
    this.#facts.rateExceeded ??= false;
    this.#facts.permission = this.#operation().permission(principal);
    this.#ask = {
      request: this.#request,
      captures: route?.captures ?? [],
      query,
      preferences,
      principal,
      known: this.#known,
      now,
      companions: this.#companions,
    };
  }

  async #gatherContent(): Promise<void> {
    const taken = await takeContent(this.#room, this.#request, this.#reading, this.#asked());
    this.#bytes = taken.bytes;
    if (taken.ok) {
      this.#content = taken.content;
      this.#facts.contentProblem = null;
    } else {
      this.#problem = taken.problem;
      this.#facts.contentProblem = taken.problem.code;
    }
  }

  async #gatherIdempotency(): Promise<void> {
    const ask = this.#asked();
    const fingerprint = fingerprintOf(ask, this.#bytes ?? new Uint8Array());
    const claim = await this.#room.idempotency.claim(ask, fingerprint);
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
    const { act } = this.#operation();
    if (act === undefined) throw new Error('an unsafe method without an act');
    this.#attempts += 1;
    const result = await act(this.#asked(), this.#stood(), this.#proposal);
    if ('superseded' in result && this.#attempts < this.#room.limits.commitRetriesMax) {
      writeSuperseded(this.#facts);
    } else if ('superseded' in result) this.#settleResult({ refused: { code: 'unavailable' } });
    else this.#settleResult(result);
  }

  #settleResult(result: Exclude<Result, { superseded: true }>): void {
    writeResult(this.#facts, result);
    if ('made' in result) {
      this.#made = result;
      return;
    }
    this.#problem = result.refused;
    if (result.allowance !== undefined) this.#allowance = result.allowance;
  }

  #finish(step: Exclude<Step, { kind: 'want' }>): MaybePromise<Response> {
    if (this.#claim !== undefined && step.kind === 'refuse') return this.#giveBack(step);
    return this.#respond(step);
  }

  /**
   * A request refused before the store was asked leaves its Idempotency-Key free for a corrected one, and one that
   * gave up on lost races leaves it free for another try.
   */
  async #giveBack(step: Exclude<Step, { kind: 'want' }>): Promise<Response> {
    const settled = this.#facts.result === 'refused' && this.#problem?.code !== 'unavailable';
    await this.#claim?.release(settled ? this.#problem : undefined);
    return this.#respond(step);
  }

  async #abandon(error: unknown): Promise<never> {
    await this.#claim?.release(undefined).catch(() => {
      // The claim expires by itself; the failure under way is the one to report.
    });
    throw error;
  }

  #respond(step: Exclude<Step, { kind: 'want' }>): MaybePromise<Response> {
    return respond(this.#room, step, {
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
