/**
 * The load generator: a process of its own, so that it can have a processor of its own. Reads a LoadPlan (JSON) on
 * standard input, sends the load, writes a LoadResult (JSON) on standard output.
 *
 * Usage: node bench/load/main.ts < plan.json
 */
import { text } from 'node:stream/consumers';
import { setTimeout as wait } from 'node:timers/promises';
import { productId } from '../product.ts';
import { LoadConnection } from './connection.ts';
import { LatencyHistogram } from './histogram.ts';
import type { LoadPlan, LoadResult } from './plan.ts';
import { Polling } from './polling.ts';
import { createRequestSource, fieldValue, type RequestSource, spreadIndex } from './requests.ts';

const readBufferBytes = 262_144;
/** One answer in this many is kept whole and checked. */
const sampleEvery = 997;
const faultsMax = 5;
const locationsMax = 64;
const etagsMax = 4_096;
/** A paced load sends what is due at each turn of this timer. */
const paceMs = 1;

class Load {
  readonly #plan: LoadPlan;
  readonly #source: RequestSource;
  readonly #latency = new LatencyHistogram();
  readonly #connections: LoadConnection[] = [];
  readonly #idle: LoadConnection[] = [];
  readonly #faults: string[] = [];
  readonly #locations: string[] = [];
  #sent = 0;
  #answered = 0;
  #sampled = 0;
  #errors = 0;
  #running = false;
  readonly #polling = new Polling(() => this.#answered);

  constructor(plan: LoadPlan, source: RequestSource) {
    this.#plan = plan;
    this.#source = source;
  }

  async run(): Promise<LoadResult> {
    await this.#open();
    this.#running = true;
    const pacer = this.#plan.ratePerSecond === undefined ? undefined : this.#pace(this.#plan.ratePerSecond);
    if (pacer === undefined) for (const connection of this.#connections) this.#send(connection);
    if (this.#plan.polls) this.#polling.start();
    await wait(this.#plan.warmupMs);
    this.#latency.reset();
    const idleBeforeMs = this.#polling.idleMs;
    const startedMs = performance.now();
    const cpuBefore = process.cpuUsage();
    await wait(this.#plan.measuredMs);
    const elapsedMs = performance.now() - startedMs;
    const cpu = process.cpuUsage(cpuBefore);
    const busyMs = processorUs(cpu) / 1000 - (this.#polling.idleMs - idleBeforeMs);
    const latency = this.#latency.summary();
    this.#running = false;
    this.#polling.stop();
    clearInterval(pacer);
    for (const connection of this.#connections) connection.end();
    return {
      requestsPerSecond: (latency.count / elapsedMs) * 1000,
      answersTotal: this.#answered,
      latency,
      generatorBusy: busyMs / elapsedMs,
      generatorUs: processorUs(process.cpuUsage()),
      sampled: this.#sampled,
      errors: this.#errors,
      faults: this.#faults,
      locations: this.#locations,
    };
  }

  #open(): Promise<unknown> {
    const buffer = new Uint8Array(readBufferBytes);
    const opened = Array.from(
      { length: this.#plan.connections },
      (_, number) =>
        new Promise<void>((resolve) => {
          const connection = new LoadConnection({
            host: this.#plan.host,
            port: this.#plan.port,
            number,
            buffer,
            onReady: () => resolve(),
            onAnswer: (from, latencyMs) => this.#onAnswer(from, latencyMs),
            onFault: (_from, fault) => {
              this.#fault(fault);
              resolve();
            },
          });
          this.#connections.push(connection);
          this.#idle.push(connection);
        }),
    );
    return Promise.all(opened);
  }

  /** Sends at a fixed rate on whichever connections are free; what cannot be sent for want of one is sent later. */
  #pace(ratePerSecond: number): NodeJS.Timeout {
    const startedMs = performance.now();
    let sent = 0;
    return setInterval(() => {
      const due = ((performance.now() - startedMs) / 1000) * ratePerSecond;
      for (; sent < due; sent += 1) {
        const connection = this.#idle.pop();
        if (connection === undefined) return;
        this.#send(connection);
      }
    }, paceMs);
  }

  #send(connection: LoadConnection): void {
    this.#sent += 1;
    connection.send(this.#source.next(connection.number), this.#sent % sampleEvery === 1);
  }

  #onAnswer(connection: LoadConnection, latencyMs: number): void {
    this.#answered += 1;
    this.#latency.record(latencyMs * 1000);
    const { reader } = connection;
    if (reader.status !== this.#source.status)
      this.#fault(`status ${reader.status} instead of ${this.#source.status}`);
    if (connection.sampled) this.#check(connection);
    if (!this.#running) return;
    if (this.#plan.ratePerSecond === undefined) this.#send(connection);
    else this.#idle.push(connection);
  }

  #check(connection: LoadConnection): void {
    this.#sampled += 1;
    const { head } = connection.reader;
    const fault = this.#source.check({ head, body: connection.reader.body() });
    if (fault !== undefined) this.#fault(fault);
    if (this.#plan.kind !== 'create' || this.#locations.length >= locationsMax) return;
    const location = fieldValue(head, 'location');
    if (location !== undefined) this.#locations.push(location);
  }

  #fault(fault: string): void {
    this.#errors += 1;
    if (this.#faults.length < faultsMax) this.#faults.push(fault);
  }
}

function processorUs(usage: NodeJS.CpuUsage): number {
  return usage.user + usage.system;
}

/** Entity tags of up to `etagsMax` rows, asked for before measuring. */
async function gatherEntityTags(plan: LoadPlan): Promise<ReadonlyMap<string, string>> {
  const etags = new Map<string, string>();
  const count = Math.min(plan.rows, etagsMax);
  for (let step = 0; step < count; step += 1) {
    const id = productId(spreadIndex(step, plan.rows));
    const response = await fetch(`http://${plan.host}:${plan.port}${plan.path}/${id}`);
    await response.arrayBuffer();
    const etag = response.headers.get('etag');
    if (response.status !== 200 || etag === null)
      throw new Error(`reading ${id} before measuring: status ${response.status}`);
    etags.set(id, etag);
  }
  return etags;
}

const plan: LoadPlan = JSON.parse(await text(process.stdin));
const etags = plan.kind === 'not-modified' ? await gatherEntityTags(plan) : new Map<string, string>();
const result = await new Load(plan, createRequestSource(plan, etags)).run();
process.stdout.write(JSON.stringify(result));
process.exit(0);
